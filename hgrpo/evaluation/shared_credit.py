"""Every assigner's credit of the same rollouts, computed once where methods cannot differ.

Nothing is played but what counterfactual assigners need, and that on a few groups alone. A turn
they did not draw has credit 0, which is no verdict, so they play every turn of those groups.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from hgrpo.credit.base import Context, CreditAssigner, Group, assign_all
from hgrpo.credit.make import make_assigner
from hgrpo.credit.section import CreditConfig
from hgrpo.errors import UserError
from hgrpo.streams import training_step
from hgrpo.trajectories.played_groups import PlayedGroup
from hgrpo.trajectories.trajectory import Trajectory

# These read trajectories alone; any other kind may ask for the policy.
_READERS = {"flat", "progress", "random", "judge", "state_graph"}
# Groups given at once to an assigner that would rather see several, such as a judge.
_TOGETHER = 16


@dataclass
class Computed:
    """One computation of credit, and the methods that share it.

    Attributes:
        methods: names, in the study's order.
        credit: the settings it is computed with.
        fitted: folder of a fitted model, if the kind has one here.
        note: what a reader of the table must know.
        values: float64, credit of all turns, NaN where the method was not asked; None if it could
            not run.
        fallbacks: trajectories that got equal shares in place of a judgement or of a model.
        seconds, report: how long it took; what the assigner counted.
    """

    methods: list[str]
    credit: CreditConfig
    fitted: Path | None = None
    note: str = ""
    values: np.ndarray | None = None
    fallbacks: int = 0
    seconds: float = 0.0
    report: dict[str, float] = field(default_factory=dict)

    @property
    def plays(self) -> bool:
        """Whether it needs new play."""
        return self.credit.kind == "counterfactual"

    @property
    def reads_policy(self) -> bool:
        """Whether it may ask for more than the trajectories."""
        return self.credit.kind not in _READERS

    @property
    def shares_equally(self) -> bool:
        """Whether a learnt assigner has no model to read out."""
        return self.credit.kind == "turnrd" and self.fitted is None

    @property
    def promises(self) -> str:
        """What its credit sums to over a trajectory: "return", "progress", or nothing."""
        settings = self.credit.settings
        match self.credit.kind:
            case "progress" | "random":
                return "progress"
            case "turnrd" if self.fitted is None or settings["readout"] != "value_baseline":
                return "return"
            case "judge" if settings["normalisation"] == "share":
                return "return"
        return ""


@dataclass(frozen=True)
class Rollouts:
    """The groups that all methods credit, and the same trajectories in one row.

    Attributes:
        situate: fills in the situations of trajectories where they lack; called before an
            assigner that reads them is asked.
    """

    cached: list[PlayedGroup]
    named: list[Group]
    situate: Callable[[Sequence[Trajectory]], object] = lambda trajectories: None

    @cached_property
    def trajectories(self) -> list[Trajectory]:
        """All trajectories, group by group."""
        return [trajectory for group in self.cached for trajectory in group.trajectories]

    @cached_property
    def lengths(self) -> np.ndarray:
        """Turns of each trajectory, int [N]."""
        return np.array([len(trajectory.turns) for trajectory in self.trajectories])

    @cached_property
    def groups(self) -> np.ndarray:
        """Number of each trajectory's group, int [N]."""
        sizes = [len(group.trajectories) for group in self.cached]
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def steps(self) -> list[int]:
        """Step of each trajectory."""
        return [self.cached[group].step for group in self.groups]

    def sums(self, name: str) -> np.ndarray:
        """What the credit of each trajectory may promise to sum to, float64 [N]."""
        if name == "return":
            return np.array([trajectory.env_return for trajectory in self.trajectories])
        return np.array([sum(turn.progress for turn in t.turns) for t in self.trajectories])


def name_groups(
    cached: Sequence[PlayedGroup],
    seed: int,
    own_stream: int,
    situate: Callable[[Sequence[Trajectory]], object] = lambda trajectories: None,
) -> Rollouts:
    """The groups under the names their random streams had in the run that played them.

    Args:
        cached: from `read_groups`.
        seed: of that run.
        own_stream: the `stream` of its method.
        situate: see `Rollouts`.
    """
    named = [
        Group(
            group.trajectories,
            (
                *training_step(seed, group.round, group.step, own_stream),
                group.trajectories[0].task.task_id,
            ),
        )
        for group in cached
    ]
    return Rollouts(list(cached), named, situate)


def computations(credit: Mapping[str, Mapping], fitted: Mapping[str, Path]) -> list[Computed]:
    """What is to be computed, once for methods whose credit cannot differ.

    Args:
        credit: method -> its `credit` settings.
        fitted: method -> folder of its fitted model.
    """
    found: dict[str, Computed] = {}
    for name, settings in credit.items():
        given, note = _readable(CreditConfig(**settings))
        model = fitted.get(name)
        if given.kind == "turnrd" and model is None:
            note = "no fitted model: every turn gets an equal share of the return"
        key = json.dumps([given.model_dump(mode="json"), str(model)], sort_keys=True)
        found.setdefault(key, Computed([], given, model, note)).methods.append(name)
    return list(found.values())


def _readable(credit: CreditConfig) -> tuple[CreditConfig, str]:
    """The settings to compute credit with here, and a word where they differ from the method's."""
    settings = credit.settings
    if credit.kind == "counterfactual":
        return CreditConfig(kind=credit.kind, **settings | {"turns_per_trajectory": None}), ""
    if credit.kind == "turnrd" and settings["counterfactual"]:
        # Its counterfactuals teach the next fit and are no part of the credit.
        fit = settings["fit"] | {"supervision_weight": 0.0}
        settings |= {"fit": fit, "counterfactual": None}
        note = "read out only: the counterfactuals that teach its next fit are not played"
        return CreditConfig(kind=credit.kind, **settings), note
    return credit, ""


def asked(computed: Computed, rollouts: Rollouts, played: int) -> list[Group]:
    """The groups that a computation is given: all, or the first `played` if it plays."""
    return rollouts.named[:played] if computed.plays else rollouts.named


def compute(
    computed: Computed,
    groups: Sequence[Group],
    rollouts: Rollouts,
    context: Context,
    on_done: Callable[[int], object] = lambda trajectories: None,
) -> None:
    """Fill in the credit of one computation.

    Args:
        computed: filled in. A judge that cannot be asked is noted as left out.
        groups: from `asked`.
        rollouts: which they are the first of.
        context: what assigners may use.
        on_done: called with numbers of trajectories as they are done.

    Raises:
        UserError: a fitted model is missing or corrupted.
        UserError: an assigner gives a credit that is no number, or one too many or too few.
    """
    if computed.plays:
        computed.note = f"every turn of the first {len(groups)} groups, compared on those alone"
        if not groups:
            computed.note = "left out: agreement.counterfactual_groups is 0"
            return
    total = sum(len(group.trajectories) for group in groups)
    try:
        assigner = make_assigner(computed.credit, replace(context, fitted=computed.fitted))
        if getattr(assigner, "reads_situations", False):
            rollouts.situate(rollouts.trajectories)
        began = time.perf_counter()
        credit = _assign(assigner, groups, on_done)
    except UserError as error:
        # A judge may be out of reach; the other methods can be compared all the same.
        if computed.credit.kind != "judge":
            raise
        computed.note = f"left out: {error}"
        return
    computed.seconds = time.perf_counter() - began
    computed.report = getattr(assigner, "report", dict)()
    computed.fallbacks = int(computed.report.get("judge_fallbacks", 0))
    if computed.shares_equally:
        computed.fallbacks = total
    computed.values = np.full(rollouts.lengths.sum(), np.nan)
    computed.values[: len(credit)] = credit


def _assign(
    assigner: CreditAssigner, groups: Sequence[Group], on_done: Callable[[int], object]
) -> np.ndarray:
    """Credit of all turns of the groups, one after another, float64."""
    rows = []
    together = _TOGETHER if hasattr(assigner, "assign_many") else 1
    for first in range(0, len(groups), together):
        part = groups[first : first + together]
        rows += [row for group in assign_all(assigner, part) for row in group]
        on_done(sum(len(group.trajectories) for group in part))
    return np.concatenate(rows)
