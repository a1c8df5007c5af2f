"""The advantages that training would make of a method's credit on some groups."""

from collections.abc import Sequence

import numpy as np

from hgrpo.credit.base import Group
from hgrpo.evaluation.truth.update_settings import ArmUpdate
from hgrpo.learning.advantages import takes_part
from hgrpo.learning.batch import GroupAdvantages, group_advantages, scale_advantages


def update_advantages(credit: np.ndarray, groups: Sequence[Group], update: ArmUpdate) -> np.ndarray:
    """Advantage of every turn as the arm's loss would see it, float64 [N].

    A group that would take no part in the update has advantages of 0. All credited groups count as
    one batch, which matters for the scale under `advantage_rms` only.

    Args:
        credit: float64 [N], turns of all trajectories of `groups`, NaN in groups without credit.
    """
    sizes = [sum(len(t.turns) for t in group.trajectories) for group in groups]
    parts = np.split(credit, np.cumsum(sizes)[:-1])
    known = [k for k, given in enumerate(parts) if np.isfinite(given).all()]
    made = {k: _advantages(groups[k], parts[k], update) for k in known}
    if update.training.advantage_rms is not None:
        alive = [groups[k] for k in known if not made[k].dead]
        scale_advantages(alive, update.training.advantage_rms)
    rule = update.method.dead_groups
    penalised = update.training.penalises_dead_groups(update.training.kl.init)
    found = [np.full(size, np.nan) for size in sizes]
    for k, advantages in made.items():
        part = takes_part(advantages.dead, rule, penalised)
        turns = [turn for t in groups[k].trajectories for turn in t.turns]
        found[k][:] = [turn.advantage if part else 0.0 for turn in turns]
    return np.concatenate(found)


def _advantages(group: Group, credit: np.ndarray, update: ArmUpdate) -> GroupAdvantages:
    """Store the advantages of a group's turns in the turns."""
    ends = np.cumsum([len(t.turns) for t in group.trajectories])
    return group_advantages(group, np.split(credit, ends[:-1]), update.method, update.training)
