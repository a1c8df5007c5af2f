"""Computes the credit of every method of a study on the same stored rollouts.

Methods with the same assigner settings and fitted model share one computation. Assigners that play
episodes compute credit for the first groups only, to limit the cost.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from hgrpo.credit.base import Context, Group, assign_all, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.credit.settings import CreditSettings, SumsTo
from hgrpo.errors import UserError
from hgrpo.games.streams import training_step
from hgrpo.trajectories.played_groups import PlayedGroup
from hgrpo.trajectories.trajectory import Trajectory

# Groups per call of an assigner, as in a training step.
_AT_ONCE = 16


@dataclass
class Computation:
    """The credit of all methods with the same assigner settings and the same fitted model.

    Attributes:
        methods: names of the methods that share this credit, in the order of `computations`.
        credit: the assigner and its settings for stored rollouts.
        sums_to: quantity to which a trajectory's credit sums; see `CreditSettings`.
        fitted: folder of the fitted model, or None.
        stand_in: whether all credit is fallback credit, because there is no fitted model.
        note: remark for checks.csv and the figure's caption.
        values: credit, float64 [turns of all trajectories], NaN for turns of uncredited groups.
            None before `compute`, and if `compute` assigned no credit.
        fallbacks: number of trajectories with fallback credit.
    """

    methods: list[str]
    credit: CreditConfig
    sums_to: SumsTo
    fitted: Path | None = None
    stand_in: bool = False
    note: str = ""
    values: np.ndarray | None = None
    fallbacks: int = 0
    seconds: float = 0.0
    report: dict[str, float] = field(default_factory=dict)

    @property
    def declared(self) -> CreditSettings:
        """The settings of `credit`, with the assigner's declared properties."""
        return self.credit.declared


@dataclass(frozen=True)
class SharedRollouts:
    """Stored groups of one round, to which all methods assign credit.

    Attributes:
        stored: the groups in the order of play.
        seed: seed of the run that played the groups.
        own_stream: setting `stream` of the method that played the groups.
    """

    stored: list[PlayedGroup]
    seed: int
    own_stream: int

    @cached_property
    def named(self) -> list[Group]:
        """The groups as input of assigners, with the names of the random streams of their run."""
        named = []
        for group in self.stored:
            step = training_step(self.seed, group.round, group.step, self.own_stream)
            stream = (*step, group.trajectories[0].task.task_id)
            named.append(Group(group.trajectories, stream))
        return named

    @cached_property
    def trajectories(self) -> list[Trajectory]:
        """All N trajectories, group by group."""
        return [trajectory for group in self.stored for trajectory in group.trajectories]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Number of turns of each trajectory, int [N]."""
        return np.array([len(trajectory.turns) for trajectory in self.trajectories])

    @cached_property
    def groups(self) -> list[int]:
        """Index in `stored` of each trajectory's group."""
        return [index for index, group in enumerate(self.stored) for _ in group.trajectories]

    @cached_property
    def steps(self) -> list[int]:
        return [self.stored[group].step for group in self.groups]

    def sums(self, name: SumsTo) -> np.ndarray:
        """Return the expected sum of each trajectory's credit: its return or progress, [N]."""
        if name == "return":
            return np.array([trajectory.env_return for trajectory in self.trajectories])
        return np.array([sum(turn.progress for turn in t.turns) for t in self.trajectories])


def computations(
    credit: Mapping[str, CreditConfig], fitted: Mapping[str, Path]
) -> list[Computation]:
    """Group methods into computations; `fitted` maps methods to folders of fitted models."""
    by_key: dict[str, Computation] = {}
    for name, config in credit.items():
        model = fitted.get(name)
        how = config.declared.on_stored_rollouts(model is not None)
        assigner = CreditConfig(kind=config.kind, **how.settings.model_dump(mode="json"))
        key = json.dumps([assigner.model_dump(mode="json"), str(model)], sort_keys=True)
        new = Computation([], assigner, how.sums_to, model, how.stand_in, how.note)
        by_key.setdefault(key, new).methods.append(name)
    return list(by_key.values())


def groups_for(computation: Computation, rollouts: SharedRollouts, played: int) -> list[Group]:
    """The groups to credit: all, or only the first `played` if the assigner plays episodes."""
    return rollouts.named[:played] if computation.declared.plays else rollouts.named


def compute(
    computation: Computation,
    groups: Sequence[Group],
    rollouts: SharedRollouts,
    context: Context,
    on_done: Callable[[int], object] = lambda trajectories: None,
) -> None:
    """Compute the credit, and store it in `computation`.

    Only a note is stored, without credit, if the assigner plays episodes and `groups` is empty, or
    if the assigner raises a UserError and has `may_be_unreachable`.

    Args:
        groups: from `groups_for`, the first groups of `rollouts`.
        context: further inputs of assigners, such as the policy.
        on_done: called after each call of the assigner, with its number of trajectories.

    Raises:
        UserError: a fitted model is missing or damaged, the rollouts cannot be replayed, or the
            credit is not finite or does not match the turns. Assigners with `may_be_unreachable`
            are exempt.
    """
    declared = computation.declared
    if declared.plays:
        computation.note = f"every turn of the first {len(groups)} groups, compared only on those"
        if not groups:
            computation.note = "omitted, because agreement.counterfactual_groups is 0"
            return
    try:
        assigner = make_assigner(computation.credit, replace(context, fitted=computation.fitted))
        if not declared.reads_embeddings:
            # Copy the turns, so that embeddings stored by this assigner do not affect TurnRD.
            groups = [_copied(group) for group in groups]
        began = time.perf_counter()
        rows = []
        for first in range(0, len(groups), _AT_ONCE):
            part = groups[first : first + _AT_ONCE]
            rows += [row for group in assign_all(assigner, part) for row in group]
            on_done(sum(len(group.trajectories) for group in part))
    except UserError as error:
        # If one method's service is unreachable, the other methods are still compared.
        if not declared.may_be_unreachable:
            raise
        computation.note = f"omitted: {error}"
        return
    computation.seconds = time.perf_counter() - began
    computation.report = assigner.report()
    computation.fallbacks = int(computation.report.get(declared.fallback_column, 0))
    if computation.stand_in:
        computation.fallbacks = sum(len(group.trajectories) for group in groups)
    computation.values = np.full(rollouts.lengths.sum(), np.nan)
    credit = np.concatenate(rows)
    computation.values[: len(credit)] = credit


def _copied(group: Group) -> Group:
    trajectories = [
        replace(trajectory, turns=[replace(turn) for turn in trajectory.turns])
        for trajectory in group.trajectories
    ]
    return Group(trajectories, group.stream)
