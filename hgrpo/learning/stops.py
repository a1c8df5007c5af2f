"""When a run stops before its last round: returns that no longer differ, a policy that never wins.

The rules are those of RAGEN (https://arxiv.org/abs/2504.20073) and RAGEN-2
(https://arxiv.org/abs/2604.06268). Two things are added. A floor of the limit stops a run whose
first steps had no differences either. And a run that wins nearly always is `solved`: its returns
also differ no more, but it has not failed.

The rules are pure functions. Their state goes into every checkpoint, so that a resumed run stops
where an undisturbed one does.
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
    """Stops a run if returns differ far less within groups than in its first steps.

    A step's deviation is the mean over its groups, before any filter, of the deviation of their
    returns. Steps of which the filter left nothing do not count.
    """

    window: int = Field(
        10,
        gt=0,
        description="steps whose mean deviation is the baseline, the run's first ones; and steps "
        "in a row that must lie below the limit, none of them among the first ones",
    )
    share: float = Field(
        0.1, gt=0, lt=1, description="the limit is this share of the baseline, or `floor`"
    )
    floor: float = Field(
        1e-3,
        ge=0,
        description="least value of the limit, in units of the return; without it a run that has "
        "a baseline of 0 would never stop",
    )
    solved_above: float = Field(
        0.9,
        gt=0,
        le=1,
        description="if the mean success rate of the steps in the window is above this, the run "
        "is `solved` and has not failed; 1: never",
    )


class LowValidation(Strict):
    """Stops a run that wins almost nothing on the validation panel; round 0 does not count."""

    below: float = Field(
        0.01, gt=0, le=1, description="a round is low if its success rate is below this"
    )
    rounds: int = Field(
        5,
        gt=0,
        description="low rounds in a row after which the run stops; in a study of fewer rounds "
        "this never happens",
    )


class EmptySteps(Strict):
    """Stops a run if the filter leaves its batches empty."""

    steps: int = Field(5, gt=0, description="empty steps in a row after which the run stops")
    solved_above: float = Field(
        0.9,
        gt=0,
        le=1,
        description="if the mean success rate of these steps is above this, the run is `solved` "
        "and has not failed: groups that always win differ no more; 1: never",
    )


class StopConfig(Strict):
    """When a run stops before its last round; each rule is off where it is null."""

    reward_collapse: RewardCollapse | None = Field(
        None, description="stop if the returns no longer differ within groups; null: off"
    )
    low_validation: LowValidation | None = Field(
        None, description="stop if the validation panel is hardly ever won; null: off"
    )
    empty_steps: EmptySteps | None = Field(
        None, description="stop if the filter leaves nothing, step after step; null: off"
    )


@dataclass(frozen=True)
class StopState:
    """State of the rules after the steps so far; a new run has the defaults.

    Attributes:
        status: "" while the run goes on; `stopped` if it failed, `solved` if it did not.
        rule: the rule that ended the run.
        round, step: where it ended. `step` is None if it ended between rounds.
        baseline: the mean deviation of the first `window` non-empty steps; None before they are
            played.
        deviations, successes: deviation and success rate of the last non-empty steps, at most
            `window` of them.
        seen: number of non-empty steps so far.
        empty: number of the last steps that were empty, without a step between them that was not.
        empty_successes: success rates of the last of these, at most `steps` of the rule.
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
        """Whether the run has ended."""
        return self.status != ""

    def ended(self, status: Status, rule: Rule, where: tuple[int, int | None]) -> "StopState":
        """The state of a run that this rule ends in this round, at this step."""
        return replace(self, status=status, rule=rule, round=where[0], step=where[1])

    def ending(self) -> dict[str, object]:
        """How the round has ended, for readers: `status` is `completed` if no rule has fired."""
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

    The state of a run that has ended stays as it is.

    Args:
        mean_deviation: mean over all groups, before the filter, of the deviation of the returns.
        success: share of the step's trajectories that succeeded, before the filter.
        empty: whether the filter left nothing.
        where: the round, which counts from 1, and its step, from 0.
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
    """Stop if all steps of the window lie below the limit, and none of them made the baseline."""
    deviations = (*state.deviations, deviation)[-rule.window :]
    successes = (*state.successes, success)[-rule.window :]
    baseline = _mean(deviations) if state.seen == rule.window else state.baseline
    state = replace(state, baseline=baseline, deviations=deviations, successes=successes)
    if _low_steps(state, rule) < rule.window:
        return state
    return state.ended(_status(successes, rule.solved_above), "reward_collapse", where)


def _low_steps(state: StopState, rule: RewardCollapse) -> int:
    """How many of the last non-empty steps in a row lie below the limit, at most `window`.

    Steps that made the baseline do not count.
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
    """The rule that stops a run after these rounds, or None.

    Args:
        validation_successes: success rates on the validation panel of all rounds so far, from
            round 1 on. Round 0, the SFT policy, is not among them.
    """
    rule = config.low_validation
    if rule is None or len(validation_successes) < rule.rounds:
        return None
    low = all(success < rule.below for success in validation_successes[-rule.rounds :])
    return "low_validation" if low else None


def greedy_validation(summary: Path) -> float:
    """Greedy success on the validation panel, from the summary of an evaluation.

    Raises:
        UserError: the file is damaged, or that panel was not played.
    """
    try:
        return float(json.loads(summary.read_bytes())["success"]["validation T=0"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{summary}: no greedy success on the validation panel") from None


def stop_row(state: StopState, config: StopConfig) -> dict[str, float | None]:
    """Log entries of the rules that are on; None for a mean that is not there yet."""
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
