"""What a credit assigner is, and which ones there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hgrpo.agent.trajectory import Trajectory


@dataclass(frozen=True)
class Group:
    """K trajectories of one task, and the name of the group's random stream."""

    trajectories: Sequence[Trajectory]
    stream: tuple[object, ...]


class CreditAssigner(Protocol):
    """Says which turn earned the return."""

    def assign(self, group: Group) -> list[np.ndarray]:
        """Credit of every turn: K arrays, the k-th as long as trajectory k has turns."""
        ...
