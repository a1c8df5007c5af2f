"""Computes the advantages that training would use, given a method's credit."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hgrpo.config.read import read_yaml
from hgrpo.credit.base import Context, Group, other_orders
from hgrpo.errors import UserError
from hgrpo.evaluation.shared_rollouts import SharedRollouts, computations, compute
from hgrpo.evaluation.truth.update_settings import TRAINING, ArmUpdate
from hgrpo.games.base import Task
from hgrpo.learning.batch import GroupAdvantages, group_advantages
from hgrpo.learning.method import MethodConfig
from hgrpo.trajectories.played_groups import read_groups
from hgrpo.trajectories.store import SEQUENCES_FILE, read_sequences


def update_advantages(credit: np.ndarray, groups: Sequence[Group], update: ArmUpdate) -> np.ndarray:
    """Advantage of every turn in the arm's loss, float64 [N].

    Advantages in dead groups are 0, even if these groups are excluded from the update. Advantages
    are not scaled by `advantage_rms`, because a common factor does not change the direction of the
    update.

    Args:
        credit: float64 [N], over the turns of all trajectories; NaN in groups without credit.
    """
    sizes = [sum(len(t.turns) for t in group.trajectories) for group in groups]
    parts = np.split(credit, np.cumsum(sizes)[:-1])
    known = [k for k, part in enumerate(parts) if np.isfinite(part).all()]
    made = {k: _advantages(groups[k], parts[k], update) for k in known}
    by_group = [np.full(size, np.nan) for size in sizes]
    for k, advantages in made.items():
        turns = [turn for t in groups[k].trajectories for turn in t.turns]
        by_group[k][:] = [0.0 if advantages.dead else turn.advantage for turn in turns]
    return np.concatenate(by_group)


def _advantages(group: Group, credit: np.ndarray, update: ArmUpdate) -> GroupAdvantages:
    ends = np.cumsum([len(t.turns) for t in group.trajectories])
    return group_advantages(group, np.split(credit, ends[:-1]), update.method, update.training)


def credited(
    method: MethodConfig, folder: Path, order: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """A method's credit and advantages for the N turns of published rollouts, float64 [N] each.

    Args:
        method: the arm. Only its assigner, `alpha` and `turn_norm` are used.
        folder: folder of rollouts, such as those in docs/truth.
        order: if given, pass the groups to the assigner in reverse order, and the trajectories of
            each group in the order `other_orders(...)[order]`.

    Raises:
        UserError: rollouts are not sufficient for the assigner, or a file is missing or damaged.
    """
    names = ["task_id", "content_hash", "task_type"]
    rows = read_sequences(folder / SEQUENCES_FILE, names).to_pylist()
    stored = read_groups(folder, [Task(path="", **row) for row in rows])
    at = np.split(np.arange(len(rows)), np.cumsum([len(g.trajectories) for g in stored])[:-1])
    if order is not None:
        orders = [other_orders(len(group.trajectories))[order] for group in stored]
        pairs = [*zip(stored, orders, strict=True)][::-1]
        stored = [replace(g, trajectories=[g.trajectories[k] for k in ks]) for g, ks in pairs]
        at = [rows[ks] for rows, ks in zip(at, orders, strict=True)][::-1]
    rollouts = SharedRollouts(stored, read_yaml(folder / "summary.json").get("seed", 0), 0)
    if source := _source(method, rollouts):
        raise UserError(
            f"{method.name}: its credit requires {source}, but {folder} contains only turns; "
            "use `snakemake credit_agreement` to compare methods within a study"
        )
    (computed,) = computations({method.name: method.credit}, {})
    compute(computed, rollouts.named, rollouts, Context())
    training = {key: method.training[key] for key in TRAINING & set(method.training)}
    update = ArmUpdate(method=method, training=training)
    advantages = update_advantages(computed.values, rollouts.named, update)
    ends, order = np.cumsum(rollouts.lengths)[:-1], np.argsort(np.concatenate(at))
    credit, advantage = (
        np.concatenate([np.split(values, ends)[k] for k in order])
        for values in (computed.values, advantages)
    )
    return credit, advantage


def _source(method: MethodConfig, rollouts: SharedRollouts) -> str:
    """What the method's assigner requires in addition to rollouts; "" if nothing."""
    declared = method.credit.declared
    if not method.train or method.uses_critic:
        untrained = "an assigner, which untrained arms lack"
        return f"a critic ({method.advantage})" if method.train else untrained
    if declared.plays or declared.needs_policy or declared.reads_embeddings or declared.fits:
        return "the policy, its hidden states, further play or a fit"
    return "the game or a service" if declared.uses or declared.may_be_unreachable else ""
