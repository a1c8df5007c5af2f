from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.learning.stops import (
    EmptySteps,
    LowValidation,
    RewardCollapse,
    StopConfig,
    StopState,
    after_collection,
    after_evaluations,
    stop_row,
)

COLLAPSE = StopConfig(reward_collapse=RewardCollapse())
SHORT = StopConfig(reward_collapse=RewardCollapse(window=2), empty_steps=EmptySteps(steps=3))
EMPTY = None


def play(
    config: StopConfig,
    deviations: Sequence[float | None],
    success: float | Sequence[float] = 0.0,
) -> list[StopState]:
    """The states after steps of these deviations; None is an empty step. A round has 4 steps."""
    state, states = StopState(), []
    for number, deviation in enumerate(deviations):
        won = success if isinstance(success, float) else success[number]
        where = 1 + number // 4, number % 4
        played = 0.0 if deviation is None else deviation
        state = after_collection(state, config, played, won, deviation is None, where)
        states.append(state)
    return states


def test_all_rules_are_off_by_default():
    states = play(StopConfig(), [1.0] * 10 + [0.0] * 50 + [EMPTY] * 50)
    assert not states[-1].over
    assert after_evaluations(StopConfig(), [0.0] * 50) is None
    assert stop_row(states[-1], StopConfig()) == {}


def test_a_deviation_at_the_limit_does_not_count():
    config = StopConfig(reward_collapse=RewardCollapse(window=2, share=0.5, floor=0.25))
    assert not play(config, [1.0, 1.0, 0.5, 0.5])[-1].over
    assert play(config, [1.0, 1.0, 0.49, 0.49])[-1].over
    # Here the floor is the limit.
    assert not play(config, [0.25, 0.25, 0.25, 0.25])[-1].over
    assert play(config, [0.25, 0.25, 0.24, 0.24])[-1].over


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


def test_the_place_of_the_end_and_the_baseline_by_hand():
    last = play(COLLAPSE, [1.0] * 10 + [0.05] * 10)[-1]
    assert (last.status, last.rule, last.round, last.step) == ("stopped", "reward_collapse", 5, 3)
    assert last.baseline == 1.0


def test_empty_steps_of_a_policy_that_always_wins_are_no_failure():
    states = play(SHORT, [EMPTY, 1.0] + [EMPTY] * 3, [0.0, 0.5, 1.0, 0.9, 0.9])
    assert (states[-1].status, states[-1].rule) == ("solved", "empty_steps")
    assert play(SHORT, [EMPTY] * 3, [1.0, 0.8, 0.9])[-1].status == "stopped"


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
        ({"reward_collapse": {"share": 1}}, "reward_collapse.share: "),
        ({"reward_colapse": {}}, "reward_colapse: "),
    ],
)
def test_wrong_settings_are_one_line_that_names_the_key(settings, message):
    with pytest.raises(UserError) as caught:
        validate(StopConfig, settings, "study.yaml")
    assert str(caught.value).startswith("study.yaml: " + message)
