"""The advantages that training would make of a method's credit on some groups."""

from collections.abc import Sequence

import numpy as np

from hgrpo.credit.base import Group
from hgrpo.evaluation.truth.update_settings import ArmUpdate
from hgrpo.learning.batch import GroupAdvantages, group_advantages


def update_advantages(credit: np.ndarray, groups: Sequence[Group], update: ArmUpdate) -> np.ndarray:
    """Advantage of every turn as the arm's loss would see it, float64 [N].

    Dead groups have advantages of 0, whether they take part in the update or not. The scale of
    `advantage_rms` is left out: a common factor changes no direction.

    Args:
        credit: float64 [N], turns of all trajectories of `groups`, NaN in groups without credit.
    """
    sizes = [sum(len(t.turns) for t in group.trajectories) for group in groups]
    parts = np.split(credit, np.cumsum(sizes)[:-1])
    known = [k for k, given in enumerate(parts) if np.isfinite(given).all()]
    made = {k: _advantages(groups[k], parts[k], update) for k in known}
    found = [np.full(size, np.nan) for size in sizes]
    for k, advantages in made.items():
        turns = [turn for t in groups[k].trajectories for turn in t.turns]
        found[k][:] = [0.0 if advantages.dead else turn.advantage for turn in turns]
    return np.concatenate(found)


def _advantages(group: Group, credit: np.ndarray, update: ArmUpdate) -> GroupAdvantages:
    """Store the advantages of a group's turns in the turns."""
    ends = np.cumsum([len(t.turns) for t in group.trajectories])
    return group_advantages(group, np.split(credit, ends[:-1]), update.method, update.training)
