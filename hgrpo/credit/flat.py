"""Assigns credit 0 to every turn, as in flatGRPO."""

import numpy as np

from hgrpo.credit.base import CreditAssigner, Group
from hgrpo.credit.settings import CreditSettings


class Settings(CreditSettings):
    """Accepts no key."""

    of_turns = False
    demands = {"alpha": (1.0, "its credit is 0, so only the trajectory's advantage remains")}


class FlatCredit(CreditAssigner):
    """Assigns credit 0 to every turn, so that only the trajectory's advantage remains."""

    def assign(self, group: Group) -> list[np.ndarray]:
        return [np.zeros(len(trajectory.turns)) for trajectory in group.trajectories]


make = FlatCredit
