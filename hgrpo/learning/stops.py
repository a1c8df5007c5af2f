"""When a run stops before its last round: returns that no longer differ, a policy that never wins.

The rules are those of RAGEN (https://arxiv.org/abs/2504.20073) and RAGEN-2
(https://arxiv.org/abs/2604.06268). Two things are added. A floor of the limit stops a run whose
first steps had no differences either. And a run that wins nearly always is `solved`: its returns
also differ no more, but it has not failed.

All functions are pure. The state goes into every checkpoint, so that a resumed run stops where an
undisturbed one does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Literal

from hgrpo.learning.stop_settings import EmptySteps, RewardCollapse, StopConfig

Status = Literal["", "stopped", "solved"]
Rule = Literal["", "reward_collapse", "low_validation", "empty_steps"]


@dataclass(frozen=True)
class Where:
    """A step of a run: its round, which counts from 1, and its step in the round, from 0."""

    round: int
    step: int


@dataclass(frozen=True)
class StopState:
    """What the rules know of a run so far; a new run has the defaults.

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
        empty_successes: success rates of the last of these, at most as many as the rule asks for.
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

    def ended(self, status: Status, rule: Rule, round_index: int, step: int | None) -> "StopState":
        """The state of a run that this rule ends here."""
        return replace(self, status=status, rule=rule, round=round_index, step=step)

    def ending(self) -> dict[str, object]:
        """How the round has ended, for readers: `status` is `completed` if no rule has fired."""
        status = self.status or "completed"
        return {"status": status, "rule": self.rule, "round": self.round, "step": self.step}

    def to_dict(self) -> dict[str, object]:
        """The state as plain values: dict, list, str, int, float and None."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, object]) -> "StopState":
        """The state that `to_dict` made a mapping of.

        Raises:
            ValueError: the mapping has other keys.
        """
        if given.keys() != (names := {field.name for field in fields(cls)}):
            raise ValueError(f"stop state with keys {sorted(given)}, not {sorted(names)}")
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})


def after_collection(
    state: StopState,
    config: StopConfig,
    mean_deviation: float,
    success: float,
    empty: bool,
    where: Where,
) -> StopState:
    """The state after a step was played and filtered, before its update.

    The state of a run that has ended stays as it is.

    Args:
        mean_deviation: mean over all groups, before the filter, of the deviation of the returns.
        success: share of the step's trajectories that succeeded, before the filter.
        empty: whether the filter left nothing.
    """
    if state.over:
        return state
    if empty:
        return _after_empty(state, config.empty_steps, float(success), where)
    state = replace(state, seen=state.seen + 1, empty=0, empty_successes=())
    if config.reward_collapse is None:
        return state
    played = float(mean_deviation), float(success)
    return _after_played(state, config.reward_collapse, *played, where)


def _after_empty(
    state: StopState, rule: EmptySteps | None, success: float, where: Where
) -> StopState:
    state = replace(state, empty=state.empty + 1)
    if rule is None:
        return state
    last = (*state.empty_successes, success)[-rule.steps :]
    state = replace(state, empty_successes=last)
    if len(last) < rule.steps:
        return state
    status = _status(last, rule.solved_above)
    return state.ended(status, "empty_steps", where.round, where.step)


def _after_played(
    state: StopState, rule: RewardCollapse, deviation: float, success: float, where: Where
) -> StopState:
    """Stop if all steps of the window lie below the limit, and none of them made the baseline."""
    deviations = (*state.deviations, deviation)[-rule.window :]
    successes = (*state.successes, success)[-rule.window :]
    baseline = _mean(deviations) if state.seen == rule.window else state.baseline
    state = replace(state, baseline=baseline, deviations=deviations, successes=successes)
    if _low_steps(state, rule) < rule.window:
        return state
    status = _status(successes, rule.solved_above)
    return state.ended(status, "reward_collapse", where.round, where.step)


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
    if rule is None or low_rounds(rule.below, validation_successes) < rule.rounds:
        return None
    return "low_validation"


def low_rounds(below: float, validation_successes: Sequence[float]) -> int:
    """How many of the last rounds in a row have a success rate below `below`."""
    for count, success in enumerate(reversed(validation_successes)):
        if not success < below:
            return count
    return len(validation_successes)


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
