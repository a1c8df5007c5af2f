"""Trajectories to a threshold, by hand: who gets there, when, and what censoring does."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hgrpo.evaluation import thresholds

# Success by round of three seeds.
RUNS = {
    "flat": {1: [0.2, 0.4, 0.6], 2: [0.5, 0.3, 0.6], 3: [0.1, 0.2, 0.3]},
    "fast": {1: [0.6, 0.6, 0.6], 2: [0.2, 0.5, 0.4], 3: [0.1, 0.5, 0.7]},
}


def play(flat=100, fast=100):
    """What each run has played when a round ends, with equal rounds; nine replies a trajectory."""
    return pd.DataFrame(
        [
            (method, seed, number, number * each, number * each * 9)
            for method, each in (("flat", flat), ("fast", fast))
            for seed in (1, 2, 3)
            for number in (1, 2, 3)
        ],
        columns=thresholds.PLAY,
    )


def runs(table=RUNS):
    return pd.DataFrame(
        [
            {"method": method, "seed": seed, "round": number, "success": value}
            for method, seeds in table.items()
            for seed, values in seeds.items()
            for number, value in enumerate(values, start=1)
        ]
    )


@pytest.fixture
def first():
    return thresholds.first_rounds(runs(), [0.5], "success", play())


def test_the_first_round_counts_even_if_the_run_falls_back(first):
    assert first[["method", "seed", "reached", "round", "trajectories"]].values.tolist() == [
        ["flat", 1, True, 3, 300],
        ["flat", 2, True, 1, 100],
        ["flat", 3, False, 3, 300],
        ["fast", 1, True, 1, 100],
        ["fast", 2, True, 2, 200],
        ["fast", 3, True, 2, 200],
    ]


def test_the_summary_by_hand(first):
    table = thresholds.summary(first, "flat", 0.95).set_index("method")
    assert table["reached"].to_dict() == {"flat": 2, "fast": 3}
    # Two of three runs of flat are there at 300, one at 100.
    assert table["median"].to_dict() == {"flat": 300, "fast": 200}
    assert table["restricted_mean"].to_dict() == pytest.approx({"flat": 700 / 3, "fast": 500 / 3})
    assert table.loc["fast", "difference"] == pytest.approx(-200 / 3)
    differences = np.array([-200.0, 100.0, -100.0])
    half = stats.t.ppf(0.975, 2) * differences.std(ddof=1) / 3**0.5
    ends = table.loc["fast", ["difference_lower", "difference_upper"]].tolist()
    assert ends == pytest.approx([-200 / 3 - half, -200 / 3 + half])
    assert table.loc["flat", "difference"] == 0
    # Equal values have no interval.
    assert np.isnan(table.loc["flat", "difference_lower"])


def test_the_median_is_missing_if_most_runs_never_get_there():
    first = thresholds.first_rounds(runs(), [0.65], "success", play())
    table = thresholds.summary(first, "flat", 0.95).set_index("method")
    assert table["reached"].to_dict() == {"flat": 0, "fast": 1}
    assert table["median"].isna().all() and (table["restricted_mean"] == 300).all()


def test_runs_that_play_less_set_the_horizon():
    first = thresholds.first_rounds(runs(), [0.5], "success", play(flat=50))
    table = thresholds.summary(first, "flat", 0.95).set_index("method")
    assert set(table["horizon"]) == {150}
    # fast needs 100, 200 and 200; the horizon cuts the last two, and the end of the interval.
    assert table.loc["fast", "reached"] == 1
    assert table.loc["fast", "upper"] == 150
    assert table.loc["fast", "restricted_mean"] == pytest.approx((100 + 150 + 150) / 3)
    drawn = thresholds.curves(first)
    assert drawn["trajectories"].max() == 150
    fast = drawn[drawn["method"] == "fast"]
    assert fast["share_reached"].tolist() == pytest.approx([0, 1 / 3, 1 / 3])


def test_runs_of_one_arm_may_play_unequally():
    mine = play()
    second = (mine["method"] == "fast") & (mine["seed"] == 2)
    mine.loc[second, "trajectories"] = [130, 250, 410]
    first = thresholds.first_rounds(runs(), [0.5], "success", mine).set_index(["method", "seed"])
    assert first.loc["fast", "trajectories"].tolist() == [100, 250, 200]
    assert first.loc["fast", "end"].tolist() == [300, 410, 300]


def test_the_curve_of_a_textbook_example():
    # Of four runs one gets there at 1 and one at 2; the others are censored at 2 and 5.
    times, shares = thresholds.curve([1, 2, 2, 5], [True, True, False, False])
    assert times.tolist() == [0, 1, 2]
    assert shares.tolist() == pytest.approx([1, 0.75, 0.5])
    mean = thresholds.restricted_mean([1, 2, 2, 5], [True, True, False, False], 5)
    assert mean == pytest.approx(1 + 0.75 + 3 * 0.5)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=8),
)
def test_without_early_censoring_the_restricted_mean_is_a_plain_mean(runs_drawn):
    # A run that does not get there is followed to the end, round 6.
    times = [time if reached else 6 for time, reached in runs_drawn]
    reached = [reached for _, reached in runs_drawn]
    assert thresholds.restricted_mean(times, reached, 6) == pytest.approx(np.mean(times))


@pytest.mark.parametrize(
    ("start", "end", "levels"),
    [
        (0.32, 0.76, [0.43, 0.54, 0.65]),
        (0.5, 0.51, [0.5, 0.51]),
        (0.4, 0.3, [0.4]),
        (0.0, 0.0, [0.0]),
    ],
)
def test_derived_thresholds(start, end, levels):
    assert thresholds.derived(start, end) == pytest.approx(levels)


@given(st.floats(0, 1), st.floats(0, 1))
def test_derived_thresholds_lie_between_their_ends(start, end):
    levels = thresholds.derived(start, end)
    assert levels and levels == sorted(set(levels))
    assert all(min(start, end) - 0.005 <= each <= max(start, end) + 0.005 for each in levels)


def test_a_threshold_that_every_run_reaches_at_once_tells_nothing():
    won, lost = pd.Series([0.0, 0.3]), pd.Series([0.0, -0.3])
    assert thresholds.without_zero([0.0, 0.1], won) == [0.1]
    assert thresholds.without_zero([-0.2, 0.0], lost) == [-0.2, 0.0]
    assert thresholds.without_zero(thresholds.derived(0.0, 0.0), won) == []
