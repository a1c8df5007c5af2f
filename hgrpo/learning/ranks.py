"""Data-parallel processes of a round, one per GPU.

Every process has the whole batch and the whole policy, and computes gradients of a part of the
micro-batches. The gradients are then summed, and all processes take the same optimiser step. A
single process has rank 0.
"""

import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist

Item = TypeVar("Item")
# This variable is set only by torch's launcher. WORLD_SIZE is also set by other programs.
_STARTED = "TORCHELASTIC_RUN_ID"


@dataclass(frozen=True)
class Ranks:
    """The rank of this process (`index`, from 0) and the number of processes (`size`)."""

    index: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and shows progress bars on behalf of all processes."""
        return self.index == 0

    def wait(self) -> None:
        """Barrier: wait until all processes have called this method."""
        if self.size > 1:
            dist.barrier()

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """This process's part of `items`: every `size`-th item, starting at `index`."""
        return items[self.index :: self.size]

    def sum_gradients(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Replace every gradient by its sum over processes; a missing gradient counts as zeros."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def gather(self, item: Item) -> list[Item]:
        """Gather the items of all processes, in the order of their ranks."""
        if self.size == 1:
            return [item]
        items: list[Item | None] = [None] * self.size
        dist.all_gather_object(items, item)
        return items  # type: ignore[return-value]

    def join(self, mine: Sequence[Item]) -> list[Item]:
        """Gather results that ranks computed from their `share`, in the order of the items."""
        parts = self.gather(list(mine))
        joined: list[Item] = [item for part in parts for item in part]
        for index, part in enumerate(parts):
            joined[index :: self.size] = part
        return joined

    def broadcast(self, item: Item) -> Item:
        """Return rank 0's item in every process."""
        return self.gather(item)[0]


ALONE = Ranks()


def is_child() -> bool:
    """Whether `become_ranks` started this process."""
    return _STARTED in os.environ


def become_ranks(processes: int) -> None:
    """Start the running module in several processes on this machine, and wait for them.

    In a child process, this function returns immediately. The parent process exits with 0 after all
    children have ended, or with the exit code of the first failed child. If one child fails, the
    others are terminated. Threads are divided equally among the children. If `processes` is 1, this
    function does nothing.
    """
    if processes == 1 or is_child():
        return
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import get_args_parser
    from torch.distributed.run import run as launch

    threads = max(1, int(os.environ.get("OMP_NUM_THREADS", processes)) // processes)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if not torch.cuda.is_available():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # Suppress the launcher's long report, because the failed process has reported its error.
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    words = ["--standalone", f"--nproc-per-node={processes}", "-m"]
    words += [sys.modules["__main__"].__spec__.name, *sys.argv[1:]]
    try:
        launch(get_args_parser().parse_args(words))
    except ChildFailedError as error:
        rank, first = error.get_first_failure()
        if first.exitcode < 0:  # ended by a signal, so without a message
            number, name = -first.exitcode, signal.Signals(-first.exitcode).name
            print(f"error: process {rank} ended by signal {number} ({name})", file=sys.stderr)
        sys.exit(max(1, first.exitcode))
    except SignalException:
        raise KeyboardInterrupt from None
    sys.exit()


def joined_ranks() -> Ranks:
    """The `Ranks` of this process, or `ALONE` if it was not started by `become_ranks`."""
    # Importing accelerate takes about a second, and a single process does not require accelerate.
    if not is_child() or int(os.environ["WORLD_SIZE"]) == 1:
        return ALONE
    from accelerate import PartialState

    # Use a long timeout, because ranks wait while rank 0 calls a judge or writes to a slow disk.
    state = PartialState(cpu=not torch.cuda.is_available(), timeout=timedelta(hours=2))
    return Ranks(state.process_index, state.num_processes)
