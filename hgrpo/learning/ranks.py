"""Processes that share an update: each takes a part of the micro-batches, gradients are summed.

One process a GPU. Every process holds the whole batch and the whole policy, so that a sum of
gradients is all that has to agree, and the step that follows is the same in all of them. A process
on its own is rank 0 of 1.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist

Item = TypeVar("Item")


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
    """Start this module anew as so many processes; returns in those, and where one is enough.

    Each gets its share of this process's threads. They find each other on this machine.
    """
    if processes == 1 or "WORLD_SIZE" in os.environ:
        return
    threads = max(1, int(os.environ.get("OMP_NUM_THREADS", processes)) // processes)
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if not torch.cuda.is_available():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    module = ["-m", sys.modules["__main__"].__spec__.name]
    os.execv(sys.executable, [sys.executable, *launch, *module, *sys.argv[1:]])


def joined_ranks() -> Ranks:
    """The processes that a launcher started together; one alone where none did."""
    # Importing accelerate takes a second, and a process on its own has no use for it.
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        return ALONE
    from accelerate import PartialState

    # Other ranks wait while the first asks a judge, or writes to a slow disk.
    state = PartialState(cpu=not torch.cuda.is_available(), timeout=timedelta(hours=2))
    return Ranks(state.process_index, state.num_processes)
