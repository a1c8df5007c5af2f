"""Early stopping of runs with collapsed returns, low validation success or empty batches.

The rules follow RAGEN (https://arxiv.org/abs/2504.20073) and RAGEN-2
(https://arxiv.org/abs/2604.06268), with two additions. First, the limit on the standard deviation
has a lower bound, so that a run stops even if all its returns are equal from the first step on.
Second, a run with near-perfect success, whose returns also become equal, ends as `solved`.

The rules are pure functions. Their state is part of every checkpoint, so that a resumed run stops
at the same step as an uninterrupted run.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from hgrpo.config.strict import Strict
from hgrpo.errors import UserError

Status = Literal["", "stopped", "solved"]
Rule = Literal["", "reward_collapse", "low_validation", "empty_steps"]


class RewardCollapse(Strict):
    """Stops a run if the deviation of returns within groups falls far below its initial value.

    The deviation of a step is the standard deviation of returns in a group, averaged over groups
    before filtering. Steps in which the filter removes all trajectories do not count.
    """

    window: int = Field(
        10,
        gt=0,
        description="the run stops after this many consecutive steps below the limit; the "
        "baseline is the mean of the first `window` steps",
    )
    share: float = Field(
        0.1, gt=0, lt=1, description="the limit is this share of the baseline, but at least `floor`"
    )
    floor: float = Field(
        1e-3,
        ge=0,
        description="minimum of the limit, in units of the return, so that a run with a baseline "
        "of 0 can stop",
    )
    solved_above: float = Field(
        0.9,
        gt=0,
        le=1,
        description="a stopped run counts as `solved` instead of failed if its mean success rate "
        "over the last `window` steps is above this value; 1: never",
    )


class LowValidation(Strict):
    """Stops a run if success on the validation panel is low after several consecutive rounds."""

    below: float = Field(
        0.01, gt=0, le=1, description="a round with a success rate below this value is low"
    )
    rounds: int = Field(
        5,
        gt=0,
        description="the run stops after this many consecutive low rounds; no effect in studies "
        "of fewer rounds",
    )


class EmptySteps(Strict):
    """Stops a run if the filter removes all trajectories of several consecutive steps."""

    steps: int = Field(5, gt=0, description="the run stops after this many consecutive empty steps")
    solved_above: float = Field(
        0.9,
        gt=0,
        le=1,
        description="a stopped run counts as `solved` instead of failed if the mean success rate "
        "of the empty steps is above this value, because groups that always win are filtered out, "
        "too; 1: never",
    )


class StopConfig(Strict):
    """Rules for early stopping of a run; null disables a rule."""

    reward_collapse: RewardCollapse | None = Field(
        None, description="stop if returns no longer differ within groups; null: off"
    )
    low_validation: LowValidation | None = Field(
        None, description="stop if success on the validation panel is low; null: off"
    )
    empty_steps: EmptySteps | None = Field(
        None,
        description="stop if the filter removes all trajectories of several steps in a row; "
        "null: off",
    )


@dataclass(frozen=True)
class StopState:
    """State of the rules. A step is empty if the filter has removed all its trajectories.

    Attributes:
        status: "" while the run continues, `stopped` if it failed, or `solved`.
        rule: the rule that ended the run.
        round, step: where the run ended; `step` is None if it ended between rounds.
        baseline: mean deviation of the first `window` non-empty steps; None until all are played.
        deviations, successes: deviation and success rate of the last `window` non-empty steps.
        seen: number of non-empty steps so far.
        empty: number of empty steps since the last non-empty step.
        empty_successes: success rates of the latest `EmptySteps.steps` of these empty steps.
    """

    status: Status = ""
    rule: Rule = ""
    round: int | None = None
    step: int | None = None
    baseline: float | None = None
    deviations: tuple[float, ...] = ()
    successes: tuple[float, ...] = ()
    seen: int = 0
    empty: int = 0
    empty_successes: tuple[float, ...] = ()

    @property
    def over(self) -> bool:
        return self.status != ""

    def ended(self, status: Status, rule: Rule, where: tuple[int, int | None]) -> "StopState":
        """The state in which `rule` has ended the run at `where` (round, step)."""
        return replace(self, status=status, rule=rule, round=where[0], step=where[1])

    def ending(self) -> dict[str, object]:
        """The outcome of the round. `status` is `completed` if no rule has ended the run."""
        status = self.status or "completed"
        return {"status": status, "rule": self.rule, "round": self.round, "step": self.step}


def after_collection(
    state: StopState,
    config: StopConfig,
    mean_deviation: float,
    success: float,
    empty: bool,
    where: tuple[int, int],
) -> StopState:
    """The state after a step was played and filtered, before its update.

    Args:
        mean_deviation: mean over all groups of the standard deviation of returns, before filtering.
        success: success rate of the step's trajectories, before filtering.
        empty: whether the filter removed all trajectories.
        where: the round (from 1) and the step within the round (from 0).
    """
    if state.over:
        return state
    if empty:
        return _after_empty(state, config.empty_steps, float(success), where)
    state = replace(state, seen=state.seen + 1, empty=0, empty_successes=())
    if config.reward_collapse is None:
        return state
    means = float(mean_deviation), float(success)
    return _after_played(state, config.reward_collapse, *means, where)


def _after_empty(
    state: StopState, rule: EmptySteps | None, success: float, where: tuple[int, int]
) -> StopState:
    state = replace(state, empty=state.empty + 1)
    if rule is None:
        return state
    last = (*state.empty_successes, success)[-rule.steps :]
    state = replace(state, empty_successes=last)
    if len(last) < rule.steps:
        return state
    return state.ended(_status(last, rule.solved_above), "empty_steps", where)


def _after_played(
    state: StopState,
    rule: RewardCollapse,
    deviation: float,
    success: float,
    where: tuple[int, int],
) -> StopState:
    """Add a non-empty step; end the run if `_low_steps` has reached `window`."""
    deviations = (*state.deviations, deviation)[-rule.window :]
    successes = (*state.successes, success)[-rule.window :]
    baseline = _mean(deviations) if state.seen == rule.window else state.baseline
    state = replace(state, baseline=baseline, deviations=deviations, successes=successes)
    if _low_steps(state, rule) < rule.window:
        return state
    return state.ended(_status(successes, rule.solved_above), "reward_collapse", where)


def _low_steps(state: StopState, rule: RewardCollapse) -> int:
    """Number of latest consecutive steps with a deviation below the limit, at most `window`.

    Empty steps, and steps from which the baseline is computed, do not count.
    """
    if state.baseline is None:
        return 0
    limit = max(rule.share * state.baseline, rule.floor)
    later = min(state.seen - rule.window, rule.window)
    low = 0
    while low < later and state.deviations[-1 - low] < limit:
        low += 1
    return low


def after_evaluations(config: StopConfig, validation_successes: Sequence[float]) -> Rule | None:
    """The rule that stops the run, given its evaluations so far; None if no rule stops it.

    Args:
        validation_successes: success rates on the validation panel after each round so far,
            excluding round 0 (the SFT policy).
    """
    rule = config.low_validation
    if rule is None or len(validation_successes) < rule.rounds:
        return None
    low = all(success < rule.below for success in validation_successes[-rule.rounds :])
    return "low_validation" if low else None


def greedy_validation(summary: Path) -> float:
    """Greedy success on the validation panel, from the summary of an evaluation.

    Raises:
        UserError: the file is damaged, or the panel was not played.
    """
    try:
        return float(json.loads(summary.read_bytes())["success"]["validation T=0"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{summary}: greedy success on the validation panel is missing") from None


def stop_row(state: StopState, config: StopConfig) -> dict[str, float | None]:
    """Log entries of the active rules; means that are not available yet are None."""
    row: dict[str, float | None] = {}
    if (rule := config.reward_collapse) is not None:
        row |= {
            "stop_baseline": state.baseline,
            "stop_window_mean": _mean(state.deviations) if state.deviations else None,
            "stop_window_success": _mean(state.successes) if state.successes else None,
            "stop_low_steps": _low_steps(state, rule),
            "stop_seen_steps": state.seen,
        }
    if config.empty_steps is not None:
        row |= {"stop_empty_steps": state.empty}
    return row


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _status(successes: Sequence[float], solved_above: float) -> Status:
    return "solved" if _mean(successes) > solved_above else "stopped"
