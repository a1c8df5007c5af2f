"""The progressive method: its credit is the environment's dense progress."""

import numpy as np

from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.credit.settings import CreditSettings


class Settings(CreditSettings):
    """Accepts no key."""

    sums_to = "progress"


class ProgressCredit(CreditAssigner):
    """Gives each turn the change of the task's potential that its action caused."""

    def assign(self, group: Group) -> list[np.ndarray]:
        """Progress of each turn, K arrays [T_k] that sum to the final minus the first potential."""
        return [
            np.array([turn.progress for turn in trajectory.turns], dtype=np.float64)
            for trajectory in group.trajectories
        ]


def make(settings: Settings, context: Context) -> ProgressCredit:
    """Make the assigner; neither argument is used."""
    return ProgressCredit()
