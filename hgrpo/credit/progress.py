"""Progressive: the environment's dense progress is the credit."""

import numpy as np

from hgrpo.credit.base import Context, Group
from hgrpo.credit.settings import NoSettings


class ProgressCredit:
    """A turn's credit is the difference of the task's potential that its action caused."""

    def assign(self, group: Group) -> list[np.ndarray]:
        """Progress of each turn, K arrays of [T_k]; sums to the final minus the first potential."""
        return [
            np.array([turn.progress for turn in trajectory.turns], dtype=np.float64)
            for trajectory in group.trajectories
        ]


def make(settings: NoSettings, context: Context) -> ProgressCredit:
    """The assigner; it needs neither."""
    return ProgressCredit()
