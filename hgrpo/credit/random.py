"""RandomCredit, a control: progress credit dealt to turns at random."""

import numpy as np

from hgrpo.credit.base import Context, Group
from hgrpo.credit.progress import ProgressCredit
from hgrpo.credit.settings import NoSettings
from hgrpo.streams import generator


class RandomCredit:
    """Shuffles each trajectory's progress credit over its turns; by chance some keep theirs.

    Same values, same sum, no knowledge of which turn earned them: a method that owes its gain to
    turn credit must beat this one. The sum still says how far the trajectory got.
    """

    def assign(self, group: Group) -> list[np.ndarray]:
        """Progress credit in random order, K arrays of [T_k], keyed by group and rollout."""
        return [
            generator("random-credit", *group.stream, trajectory.rollout).permutation(row)
            for trajectory, row in zip(
                group.trajectories, ProgressCredit().assign(group), strict=True
            )
        ]


def make(settings: NoSettings, context: Context) -> RandomCredit:
    """The assigner; it needs neither."""
    return RandomCredit()
