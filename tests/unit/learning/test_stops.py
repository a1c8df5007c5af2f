import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.learning.checkpoints import read_state, write_state
from hgrpo.learning.stop_settings import EmptySteps, LowValidation, RewardCollapse, StopConfig
from hgrpo.learning.stops import (
    StopState,
    Where,
    after_collection,
    after_evaluations,
    low_rounds,
    stop_row,
)

COLLAPSE = StopConfig(reward_collapse=RewardCollapse())
SHORT = StopConfig(reward_collapse=RewardCollapse(window=2), empty_steps=EmptySteps(steps=3))
EMPTY = None


def play(
    config: StopConfig,
    deviations: Sequence[float | None],
    success: float | Sequence[float] = 0.0,
    state: StopState | None = None,
    first: int = 0,
) -> list[StopState]:
    """The states after steps of these deviations; None is an empty step. A round has 4 steps."""
    state, states = state or StopState(), []
    for number, deviation in enumerate(deviations):
        won = success if isinstance(success, float) else success[number]
        where = Where(1 + (first + number) // 4, (first + number) % 4)
        played = 0.0 if deviation is None else deviation
        state = after_collection(state, config, played, won, deviation is None, where)
        states.append(state)
    return states


def test_all_rules_are_off_by_default():
    states = play(StopConfig(), [1.0] * 10 + [0.0] * 50 + [EMPTY] * 50)
    assert not states[-1].over
    assert after_evaluations(StopConfig(), [0.0] * 50) is None
    assert stop_row(states[-1], StopConfig()) == {}


def test_collapse_stops_at_the_20th_step_at_the_earliest():
    states = play(COLLAPSE, [1.0] * 10 + [0.05] * 10)
    assert [state.over for state in states] == [False] * 19 + [True]
    last = states[-1]
    assert (last.status, last.rule) == ("stopped", "reward_collapse")
    assert (last.round, last.step) == (5, 3)
    assert last.baseline == 1.0


def test_steps_of_the_baseline_are_not_in_the_window():
    # The baseline is 0.28, its limit 0.028: nine of its ten steps lie below.
    states = play(COLLAPSE, [2.8] + [0.0] * 19)
    assert [state.over for state in states] == [False] * 19 + [True]


def test_a_deviation_at_the_limit_does_not_count():
    config = StopConfig(reward_collapse=RewardCollapse(window=2, share=0.5, floor=0.25))
    assert not play(config, [1.0, 1.0, 0.5, 0.5])[-1].over
    assert play(config, [1.0, 1.0, 0.49, 0.49])[-1].over
    # Here the floor is the limit.
    assert not play(config, [0.25, 0.25, 0.25, 0.25])[-1].over
    assert play(config, [0.25, 0.25, 0.24, 0.24])[-1].over


def test_one_step_above_the_limit_begins_the_window_again():
    states = play(SHORT, [1.0, 1.0, 0.0, 0.5, 0.0, 0.0])
    assert [state.over for state in states] == [False] * 5 + [True]


def test_empty_steps_neither_count_nor_break_the_window():
    states = play(SHORT, [1.0, EMPTY, 1.0, 0.0, EMPTY, EMPTY, 0.0])
    assert [state.over for state in states] == [False] * 6 + [True]
    assert states[-1].rule == "reward_collapse"
    assert states[-1].seen == 4


@pytest.mark.parametrize("baseline", [0.0, 1e-12])
def test_without_differences_from_the_start_the_floor_stops(baseline):
    states = play(COLLAPSE, [baseline] * 30)
    assert [state.over for state in states[:20]] == [False] * 19 + [True]
    assert states[-1].status == "stopped"


def test_without_a_floor_a_baseline_of_0_never_stops():
    config = StopConfig(reward_collapse=RewardCollapse(floor=0))
    assert not play(config, [0.0] * 100)[-1].over


@pytest.mark.parametrize(
    ("successes", "status"),
    [([0.9, 0.9], "stopped"), ([0.91, 0.9], "solved"), ([1.0, 1.0], "solved")],
)
def test_a_run_that_wins_nearly_always_is_solved(successes, status):
    assert play(SHORT, [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, *successes])[-1].status == status
    # Success before the window does not count.
    assert play(SHORT, [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0])[-1].status == "stopped"


def test_solved_above_1_is_never():
    config = StopConfig(reward_collapse=RewardCollapse(window=1, solved_above=1))
    assert play(config, [1.0, 0.0], 1.0)[-1].status == "stopped"


def test_empty_steps_in_a_row_stop():
    states = play(SHORT, [EMPTY, EMPTY, 1.0, EMPTY, EMPTY, EMPTY])
    assert [state.empty for state in states] == [1, 2, 0, 1, 2, 3]
    assert [state.over for state in states] == [False] * 5 + [True]
    last = states[-1]
    assert (last.status, last.rule, last.round, last.step) == ("stopped", "empty_steps", 2, 1)


def test_empty_steps_of_a_policy_that_always_wins_are_no_failure():
    states = play(SHORT, [EMPTY, 1.0] + [EMPTY] * 3, [0.0, 0.5, 1.0, 0.9, 0.9])
    assert (states[-1].status, states[-1].rule) == ("solved", "empty_steps")
    assert play(SHORT, [EMPTY] * 3, [1.0, 0.8, 0.9])[-1].status == "stopped"


def test_empty_steps_are_counted_but_stop_nothing_where_the_rule_is_off():
    last = play(COLLAPSE, [EMPTY] * 100)[-1]
    assert (last.over, last.empty, last.empty_successes) == (False, 100, ())


def test_a_run_that_has_ended_stays_as_it_is():
    states = play(SHORT, [EMPTY] * 3 + [1.0] * 5)
    assert states[2:] == [states[2]] * 6


@pytest.mark.parametrize(
    ("successes", "rule"),
    [
        ([0.0] * 4, None),
        ([0.0] * 5, "low_validation"),
        ([0.5] + [0.009] * 5, "low_validation"),
        ([0.009] * 4 + [0.01], None),
        ([0.0, 0.0, 0.01, 0.0, 0.0, 0.0, 0.0], None),
        ([0.0] * 5 + [0.01], None),
        ([], None),
    ],
)
def test_low_validation_needs_five_rounds_in_a_row_strictly_below(successes, rule):
    config = StopConfig(low_validation=LowValidation())
    assert after_evaluations(config, successes) == rule


def test_low_rounds_counts_from_the_last_round_back():
    assert low_rounds(0.01, [0.0, 0.5, 0.0, 0.0]) == 2
    assert low_rounds(0.01, [0.0, 0.0]) == 2
    assert low_rounds(0.01, [0.01]) == 0
    assert low_rounds(0.01, []) == 0


def test_a_run_may_end_between_rounds():
    state = StopState(seen=3).ended("stopped", "low_validation", 6, None)
    assert state.over
    assert (state.rule, state.round, state.step, state.seen) == ("low_validation", 6, None, 3)


def test_log_entries():
    states = play(SHORT, [1.0, 0.5, 0.0, 0.5, 0.01, EMPTY], [0.0, 0.0, 0.0, 0.5, 0.25, 0.0])
    rows = [stop_row(state, SHORT) for state in states]
    assert [row["stop_baseline"] for row in rows] == [None] + [0.75] * 5
    assert [row["stop_low_steps"] for row in rows] == [0, 0, 1, 0, 1, 1]
    assert [row["stop_seen_steps"] for row in rows] == [1, 2, 3, 4, 5, 5]
    assert [row["stop_empty_steps"] for row in rows] == [0, 0, 0, 0, 0, 1]
    assert rows[-1]["stop_window_mean"] == pytest.approx(0.255)
    assert rows[-1]["stop_window_success"] == pytest.approx(0.375)
    assert stop_row(StopState(), SHORT)["stop_window_mean"] is None


def through_a_checkpoint(state: StopState, path) -> StopState:
    write_state({"stops": state.to_dict()}, path)
    return StopState.from_dict(read_state(path, ["stops"])["stops"])


def test_a_run_resumed_after_any_step_ends_as_an_undisturbed_one(tmp_path):
    deviations = [1.0, EMPTY, 0.7, 0.3, EMPTY, EMPTY, 0.01, 0.02, 0.5, 0.01, EMPTY, 0.02, 1.0]
    whole = play(SHORT, deviations, 0.3)
    assert whole[-1].over
    for step in range(1, len(deviations)):
        resumed = through_a_checkpoint(whole[step - 1], tmp_path / "state.pt")
        assert resumed == whole[step - 1]
        assert play(SHORT, deviations[step:], 0.3, resumed, step) == whole[step:]


def test_a_checkpoint_of_other_keys_is_refused():
    with pytest.raises(ValueError, match="baseline"):
        StopState.from_dict({"status": ""})


STEPS = st.lists(st.none() | st.sampled_from([0.0, 0.01, 0.5, 1.0]), max_size=40)


@given(STEPS, st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.0, 0.5, 0.95, 1.0]))
def test_the_rules_agree_with_their_plain_statement(deviations, window, steps, success):
    config = StopConfig(
        reward_collapse=RewardCollapse(window=window), empty_steps=EmptySteps(steps=steps)
    )
    expected = None
    for number in range(1, len(deviations) + 1):
        so_far = deviations[:number]
        full = [deviation for deviation in so_far if deviation is not None]
        limit = max(0.1 * sum(full[:window]) / window, 1e-3)
        if number >= steps and all(each is None for each in so_far[-steps:]):
            expected = "empty_steps"
        elif so_far[-1] is not None and len(full) >= 2 * window and max(full[-window:]) < limit:
            expected = "reward_collapse"
        if expected:
            break
    states = play(config, deviations, success)
    over = [state.over for state in states]
    if expected is None:
        assert not any(over)
    else:
        assert over.index(True) == number - 1
        assert states[-1].rule == expected
        assert states[-1].status == ("solved" if success > 0.9 else "stopped")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reward_collapse": {"window": 0}}, "reward_collapse.window: "),
        ({"reward_collapse": {"share": 1}}, "reward_collapse.share: "),
        ({"reward_collapse": {"floor": -1}}, "reward_collapse.floor: "),
        ({"reward_collapse": {"solved_above": 1.5}}, "reward_collapse.solved_above: "),
        ({"low_validation": {"below": 0}}, "low_validation.below: "),
        ({"low_validation": {"rounds": 0}}, "low_validation.rounds: "),
        ({"empty_steps": {"steps": 0}}, "empty_steps.steps: "),
        ({"reward_colapse": {}}, "reward_colapse: "),
    ],
)
def test_wrong_settings_are_one_line_that_names_the_key(settings, message):
    with pytest.raises(UserError) as caught:
        validate(StopConfig, settings, "study.yaml")
    assert str(caught.value).startswith("study.yaml: " + message)
    assert "\n" not in str(caught.value)


def test_a_collapse_cannot_be_seen_in_groups_of_one():
    with pytest.raises(ValueError, match="^reward_collapse: .* rollouts_per_task is 1"):
        COLLAPSE.check(1)
    COLLAPSE.check(2)
    StopConfig().check(1)


def test_the_settings_import_no_torch():
    code = "import hgrpo.learning.stop_settings, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
