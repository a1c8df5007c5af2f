"""Control that randomly permutes each trajectory's progress credit over its turns."""

import numpy as np

from hgrpo.credit.base import CreditAssigner, Group
from hgrpo.credit.progress import progress
from hgrpo.credit.settings import CreditSettings
from hgrpo.games.streams import generator


class Settings(CreditSettings):
    """Accepts no key."""

    sums_to = "progress"
    is_control = True


class RandomCredit(CreditAssigner):
    """Shuffles each trajectory's progress credit over its turns.

    The sum over the trajectory does not change. If a method benefits from assigning credit to the
    right turns, it must outperform this control.
    """

    def assign(self, group: Group) -> list[np.ndarray]:
        return [
            generator("random-credit", *group.stream, trajectory.rollout).permutation(row)
            for trajectory, row in zip(group.trajectories, progress(group), strict=True)
        ]


make = RandomCredit
