"""Processes that share an update: each takes a part of the micro-batches, gradients are summed.

One process a GPU. Every process holds the whole batch and the whole policy, so that a sum of
gradients is all that has to agree, and the step that follows is the same in all of them. A process
on its own is rank 0 of 1.
"""

import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist

Item = TypeVar("Item")
# Set by torch's launcher in what it starts. WORLD_SIZE alone may be about something else.
_STARTED = "TORCHELASTIC_RUN_ID"


@dataclass(frozen=True)
class Ranks:
    """Which process this is, `index`, of how many, `size`."""

    index: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and speaks for all."""
        return self.index == 0

    def wait(self) -> None:
        """Return when all processes are here."""
        if self.size > 1:
            dist.barrier()

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """This process's part of what all of them have, every `size`-th."""
        return items[self.index :: self.size]

    def sum_gradients(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Replace every gradient by its sum over processes; a missing one counts as zeros."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def gather(self, item: Item) -> list[Item]:
        """The items of all processes, in the order of their ranks."""
        if self.size == 1:
            return [item]
        found: list[Item | None] = [None] * self.size
        dist.all_gather_object(found, item)
        return found  # type: ignore[return-value]

    def join(self, mine: Sequence[Item]) -> list[Item]:
        """What all processes made of their shares, in the order of what was shared."""
        parts = self.gather(list(mine))
        joined: list[Item] = [item for part in parts for item in part]
        for index, part in enumerate(parts):
            joined[index :: self.size] = part
        return joined

    def broadcast(self, item: Item) -> Item:
        """Rank 0's item, in every process."""
        if self.size == 1:
            return item
        held = [item]
        dist.broadcast_object_list(held)
        return held[0]


ALONE = Ranks()


def become_ranks(processes: int) -> None:
    """Run this module in so many processes, and end as they do; returns in each of them.

    Each gets its share of this process's threads. They find each other on this machine. When one
    fails the others are ended, and its exit status is this process's. One process is this one.
    """
    if processes == 1 or _STARTED in os.environ:
        return
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import get_args_parser
    from torch.distributed.run import run as launch

    threads = max(1, int(os.environ.get("OMP_NUM_THREADS", processes)) // processes)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if not torch.cuda.is_available():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # Its own report of a failure is a page long, and what failed has said why.
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    words = ["--standalone", f"--nproc-per-node={processes}", "-m"]
    words += [sys.modules["__main__"].__spec__.name, *sys.argv[1:]]
    try:
        launch(get_args_parser().parse_args(words))
    except ChildFailedError as error:
        _, first = error.get_first_failure()
        sys.exit(max(1, first.exitcode))
    except SignalException:
        raise KeyboardInterrupt from None
    sys.exit()


def joined_ranks() -> Ranks:
    """The processes that a launcher started together; one alone where none did."""
    # Importing accelerate takes a second, and a process on its own has no use for it.
    if _STARTED not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        return ALONE
    from accelerate import PartialState

    # Other ranks wait while the first asks a judge, or writes to a slow disk.
    state = PartialState(cpu=not torch.cuda.is_available(), timeout=timedelta(hours=2))
    return Ranks(state.process_index, state.num_processes)
