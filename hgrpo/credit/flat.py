"""No turn credit: what flatGRPO uses."""

import numpy as np

from hgrpo.credit.base import Context, Group
from hgrpo.credit.settings import NoSettings

DEMANDS = {"alpha": (1.0, "its credit is 0, so the trajectory's advantage is all there is")}


class FlatCredit:
    """Every turn gets 0; only the trajectory's advantage speaks."""

    def assign(self, group: Group) -> list[np.ndarray]:
        """Zeros, K arrays of [T_k]."""
        return [np.zeros(len(trajectory.turns)) for trajectory in group.trajectories]


def make(settings: NoSettings, context: Context) -> FlatCredit:
    """The assigner; it needs neither."""
    return FlatCredit()
