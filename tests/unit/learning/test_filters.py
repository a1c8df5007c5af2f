from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hgrpo.config.read import validate
from hgrpo.errors import UserError
from hgrpo.learning.filters.batch import (
    Measures,
    filter_batch,
    group_scores,
    most_varied,
    select_groups,
    select_trajectories,
)
from hgrpo.learning.filters.settings import FilterConfig
from hgrpo.learning.settings import TrainingConfig

# Section 13 of the facts on RAGEN: how many of 8 groups are kept at each p, zero groups dropped.
P = (1, 0.98, 0.95, 0.9, 0.8, 0.6, 0.4)
BATCHES = {
    "A": [5.89, 3.89, 2.85] + [0.15] * 5,
    "B": [2.85] + [0.15] * 7,
    "C": [0.15] * 8,
    "D": [5.89, 5.10, 5.10, 3.89, 3.89, 2.85, 0, 0],
}
KEPT = {
    ("A", "softmax"): (8, 3, 3, 2, 1, 1, 1),
    ("A", "linear"): (8, 7, 4, 3, 3, 2, 1),
    ("A", "linear on variance"): (8, 3, 3, 3, 2, 2, 1),
    ("B", "softmax"): (8, 8, 7, 6, 4, 1, 1),
    ("B", "linear"): (8, 8, 7, 6, 3, 1, 1),
    ("B", "linear on variance"): (8, 1, 1, 1, 1, 1, 1),
    ("C", "softmax"): (8, 8, 8, 8, 7, 5, 4),
    ("C", "linear"): (8, 8, 8, 8, 7, 5, 4),
    ("C", "linear on variance"): (8, 8, 8, 7, 6, 5, 3),
    ("D", "softmax"): (6, 6, 5, 4, 3, 2, 1),
    ("D", "linear"): (6, 6, 6, 6, 5, 3, 2),
    ("D", "linear on variance"): (6, 6, 6, 5, 4, 3, 2),
}


def chosen(scores, **settings) -> set[int]:
    return set(np.flatnonzero(select_groups(np.array(scores), FilterConfig(**settings))).tolist())


@pytest.mark.parametrize(
    ("batch", "mode", "p", "count"),
    [
        (batch, mode, p, count)
        for (batch, mode), counts in KEPT.items()
        for p, count in zip(P, counts, strict=True)
    ],
)
def test_golden_counts_of_top_p(batch, mode, p, count):
    scores = np.array(BATCHES[batch])
    settings = {"mode": mode.split()[0], "value": p, "include_zero": False}
    if mode == "linear on variance":
        # The batches list deviations; the eps stays 0.01.
        scores, settings["score"] = scores**2, "variance"
    assert len(chosen(scores, **settings)) == count


@pytest.mark.parametrize(
    ("scores", "settings", "groups"),
    [
        ((4, 3, 2, 1), {"value": 0.6}, {0, 1}),
        ((4, 3, 2, 1), {"value": 0.9}, {0, 1, 2}),
        ((4, 3, 2, 1), {"value": 0.6, "order": "smallest"}, {3, 2, 1}),
        ((4, 3, 0, 1), {"value": 0.6, "order": "smallest"}, set()),
        ((0.003, 0.002, 0.001), {"value": 0.9}, set()),
        ((0.005, 0.004, 0.003), {"value": 0.9}, {0}),
        ((2, 2, 2), {"value": 0.6, "mode": "softmax"}, {0, 1}),
        ((4, 3, 2, 1), {"value": 0.9, "mode": "softmax"}, {0, 1, 2}),
        ((4, 3, 2, 1), {"value": 0.5, "mode": "softmax"}, {0}),
    ],
)
def test_golden_small_cases(scores, settings, groups):
    assert chosen(scores, **settings) == groups


def measures(returns, successes=None, lengths=None, entropies=None) -> Measures:
    returns = np.array(returns, dtype=float)
    return Measures(
        returns,
        returns > 0 if successes is None else np.array(successes),
        np.full(len(returns), 5) if lengths is None else np.array(lengths),
        None if entropies is None else np.array(entropies),
    )


@pytest.mark.parametrize(
    ("score", "value"),
    [
        ("deviation", 2**0.5),
        ("variance", 2.0),
        ("success_variance", 0.5),
        ("mean", 2.0),
        ("sum", 4.0),
        ("entropy", 0.75),
        ("entropy_deviation", 0.5**0.5 / 2),
        ("length", 15.0),
    ],
)
def test_scores_by_hand(score, value):
    group = measures([1, 3], [False, True], [10, 20], [0.5, 1.0])
    assert group_scores([group], score) == pytest.approx([value])


@pytest.mark.parametrize(
    "score", ["deviation", "variance", "success_variance", "entropy_deviation"]
)
def test_the_spread_of_one_trajectory_and_of_rounded_equal_returns_is_0(score):
    assert group_scores([measures([3], entropies=[0.5])], score).tolist() == [0.0]
    equal = measures([0.1] * 3, [True] * 3, entropies=[0.1] * 3)
    assert group_scores([equal], score).tolist() == [0.0]


@pytest.mark.parametrize(
    ("settings", "groups"),
    [
        ({"strategy": "top_k", "value": 0.5}, {1, 3, 5}),
        ({"strategy": "top_k", "value": 0.5, "include_zero": False}, {1, 3, 5}),
        ({"strategy": "top_k", "value": 0.5, "include_zero": False, "of": "remaining"}, {3, 5}),
        ({"strategy": "top_k", "value": 0.9, "include_zero": False}, {1, 3, 4, 5}),
        ({"strategy": "top_k", "value": 0.01}, {5}),
        ({"strategy": "top_k", "value": 0.5, "order": "smallest"}, {0, 2, 4}),
        ({"strategy": "top_k_abs", "value": 2}, {3, 5}),
        ({"strategy": "top_k_abs", "value": 6, "include_zero": False}, {1, 3, 4, 5}),
        ({"strategy": "min_p", "value": 0.5}, {3, 5}),
        ({"strategy": "min_p", "value": 0.25}, {1, 3, 5}),
        ({"strategy": "min_p", "value": 0.5, "order": "smallest"}, {0, 2}),
        (
            {"strategy": "min_p", "value": 0.5, "order": "smallest", "include_zero": False},
            {1, 4},
        ),
        ({"strategy": "percentile", "low": 0.5}, {1, 3, 5}),
        ({"strategy": "percentile", "high": 0.5}, {0, 2, 4}),
        ({"strategy": "percentile", "low": 0.5, "high": 0.75, "include_zero": False}, {3}),
        ({"strategy": "within_group", "value": 0.5, "include_zero": False}, {1, 3, 4, 5}),
        ({"include_zero": False, "zero_tolerance": 1}, {1, 3, 5}),
        ({"soft": True}, {0, 1, 2, 3, 4, 5}),
        ({"mode": "softmax", "value": 0.9, "temperature": 1e-3}, {5}),
        ({"mode": "softmax", "value": 0.9, "temperature": 1e9}, {0, 1, 2, 3, 4, 5}),
    ],
)
def test_strategies_by_hand(settings, groups):
    assert chosen([0, 2, 0, 4, 1, 8], **settings) == groups


def test_ties_go_by_the_order_of_groups():
    assert chosen([1, 2, 2, 2], strategy="top_k_abs", value=2) == {1, 2}
    assert chosen([1, 2, 2, 2], strategy="top_k_abs", value=2, order="smallest") == {0, 1}
    assert chosen([1, 1, 1, 1], strategy="percentile", low=0.5) == {2, 3}
    assert chosen([1, 1, 1, 1], value=0.5, mode="softmax", order="smallest") == {0, 1}


@pytest.mark.parametrize("p", [0.1, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9])
def test_rounding_costs_no_group(p):
    count = round(10 * p)
    assert len(chosen([0.1] * 10, value=p, mode="softmax")) == count
    assert len(chosen([0.1] * 10, value=p, eps=0)) == count
    assert len(chosen([0.1] * 10, strategy="top_k", value=p)) == count
    assert len(chosen([0.1] * 10, strategy="percentile", high=p)) == count
    assert most_varied(np.arange(10), count).sum() == count


def test_within_a_group_the_extremes_are_kept():
    config = FilterConfig(strategy="within_group", value=0.5)
    returns = [np.array([1.0, 0, 0, 9]), np.array([2.0, 2, 2, 2]), np.array([5.0])]
    rows = select_trajectories(returns, np.array([True, True, True]), config)
    assert [row.tolist() for row in rows] == [
        [False, True, False, True],
        [True, True, False, False],
        [True],
    ]


BATCH = [measures([0, 0]), measures([0, 2]), measures([0, 4]), measures([0, 8])]


def test_a_filtered_batch():
    config = FilterConfig(score="variance", value=0.9, include_zero=False, loss_scaling="sqrt")
    masks, weights, row = filter_batch(BATCH, config)
    assert [mask.tolist() for mask in masks] == [[False] * 2, [False] * 2, [True] * 2, [True] * 2]
    assert weights == pytest.approx([0, 0, 0.5**0.5, 0.5**0.5])
    # The scores are 0, 2, 8 and 32.
    assert row == {
        "filter_kept_groups": 2,
        "filter_kept_trajectories": 4,
        "filter_kept_mass": pytest.approx(40 / 42),
        "filter_effective_groups": pytest.approx(42**2 / (4 + 64 + 1024)),
        "filter_zero_groups": 1,
        "filter_mean_score": pytest.approx(10.5),
        "filter_mean_kept_score": pytest.approx(20),
        "filter_empty": 0,
    }


@pytest.mark.parametrize(
    ("settings", "weights"),
    [
        ({}, [1, 1, 1, 1]),
        ({"soft": True}, [0, 0.25, 0.5, 1]),
        ({"strategy": "within_group", "value": 0.5, "loss_scaling": "linear"}, [0.5] * 4),
        ({"strategy": "top_k_abs", "value": 1, "loss_scaling": "linear"}, [0, 0, 0, 0.25]),
    ],
)
def test_weights_by_hand(settings, weights):
    assert filter_batch(BATCH, FilterConfig(**settings))[1] == pytest.approx(weights)


@pytest.mark.parametrize(
    "config", [FilterConfig(include_zero=False), FilterConfig(value=0.9), FilterConfig(soft=True)]
)
def test_a_batch_without_differences_is_empty(config):
    _, weights, row = filter_batch([measures([1, 1]), measures([0, 0])], config)
    assert (row["filter_empty"], row["filter_kept_mass"]) == (1, None)
    assert not weights.any()


# Settings.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"value": 1.5}, "value: 1.5: strategy top_p requires a share in (0, 1]"),
        (
            {"strategy": "top_k_abs", "value": 2.5},
            "value: 2.5: strategy top_k_abs requires",
        ),
        (
            {"strategy": "percentile", "low": 0.5, "high": 0.5},
            "low: 0.5 must be less than `high: 0.5`",
        ),
        ({"temperature": 2}, "temperature: 2.0 has an effect only with strategy: top_p and"),
        ({"soft": True, "value": 0.5}, "value: 0.5 has an effect only with soft: false"),
        ({"score": "sum", "soft": True}, "score: sum may be negative, but soft: true"),
    ],
)
def test_wrong_settings_are_one_line_that_names_key_and_value(settings, message):
    with pytest.raises(UserError) as caught:
        validate(FilterConfig, settings, "study.yaml")
    assert str(caught.value).startswith("study.yaml: " + message)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "filter.score: deviation compares the trajectories of a group"),
        ({"score": "length", "strategy": "within_group"}, "filter.strategy: within_group compares"),
    ],
)
def test_a_filter_that_compares_needs_groups_of_more_than_one(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(rollouts_per_task=1, filter=settings)
    TrainingConfig(rollouts_per_task=1, filter={"score": "length"})


def test_top_k_abs_keeps_at_most_the_groups_of_a_step():
    top = {"strategy": "top_k_abs", "value": 3}
    with pytest.raises(ValueError, match="cannot keep 3 groups when tasks_per_step is 2"):
        TrainingConfig(tasks_per_step=2, filter=top)
    TrainingConfig(tasks_per_step=3, filter=top)


# Properties.

SHARES = st.floats(0.01, 1)
SCORES = st.lists(st.floats(0, 100), min_size=1, max_size=12)
DISTINCT = st.lists(
    st.integers(0, 10_000).map(lambda n: n / 64), min_size=1, max_size=12, unique=True
)
ORDERS = st.sampled_from(["largest", "smallest"])


@st.composite
def configs(draw) -> FilterConfig:
    strategy = draw(st.sampled_from(["top_p", "top_k", "top_k_abs", "min_p", "percentile"]))
    settings = {"strategy": strategy, "include_zero": draw(st.booleans())}
    if strategy == "percentile":
        low, high = sorted(draw(st.lists(st.floats(0, 1), min_size=2, max_size=2, unique=True)))
        return FilterConfig(low=low, high=high, **settings)
    settings |= {"order": draw(ORDERS)}
    if strategy == "top_k_abs":
        return FilterConfig(value=draw(st.integers(1, 12)), **settings)
    if strategy == "top_p":
        settings |= {"mode": draw(st.sampled_from(["linear", "softmax"]))}
    return FilterConfig(value=draw(SHARES), **settings)


@given(DISTINCT, configs(), st.randoms())
def test_without_ties_the_kept_groups_follow_a_permutation(scores, config, random):
    order = list(range(len(scores)))
    random.shuffle(order)
    straight = select_groups(np.array(scores), config)
    shuffled = select_groups(np.array(scores)[order], config)
    assert shuffled.tolist() == straight[order].tolist()


@given(SCORES, configs())
def test_zero_groups_are_kept_only_if_included_and_the_choice_repeats(scores, config):
    chosen = select_groups(np.array(scores), config)
    assert len(chosen) == len(scores)
    assert np.array_equal(chosen, select_groups(np.array(scores), config))
    if not config.include_zero:
        assert not chosen[np.abs(scores) <= config.zero_tolerance].any()


@given(SCORES, configs())
def test_what_is_kept_scores_no_worse_than_what_is_not(scores, config):
    assume(config.strategy != "percentile")
    chosen = select_groups(np.array(scores), config)
    remaining = config.include_zero | (np.array(scores) > config.zero_tolerance)
    inside, outside = np.array(scores)[chosen], np.array(scores)[remaining & ~chosen]
    if len(inside) and len(outside):
        if config.order == "largest":
            assert inside.min() >= outside.max()
        else:
            assert inside.max() <= outside.min()


@given(SCORES, SHARES, SHARES, st.sampled_from(["linear", "softmax"]), ORDERS, st.booleans())
def test_a_larger_p_keeps_what_a_smaller_one_keeps(scores, one, other, mode, order, zero):
    settings = {"mode": mode, "order": order, "include_zero": zero}
    low, high = sorted((one, other))
    assert chosen(scores, value=low, **settings) <= chosen(scores, value=high, **settings)


@given(DISTINCT, SHARES, st.sampled_from([1 / 64, 4.0, 1024.0]), ORDERS)
def test_settings_in_units_of_the_score_make_the_choice_free_of_scale(scores, share, unit, order):
    scaled = [unit * score for score in scores]
    for units, settings in (
        ({"temperature": unit}, {"mode": "softmax"}),
        ({"eps": 0.01 * unit}, {"mode": "linear"}),
        ({}, {"strategy": "top_k"}),
        ({}, {"strategy": "min_p"}),
    ):
        settings |= {"value": share, "order": order}
        assert chosen(scaled, **units, **settings) == chosen(scores, **settings)


@given(SCORES, st.floats(0.01, 0.99))
def test_softmax_always_keeps_a_group(scores, p):
    assert chosen(scores, value=p, mode="softmax")


@given(SCORES, st.lists(st.floats(0.01, 0.99), min_size=1, max_size=3, unique=True))
def test_percentile_bands_share_nothing_and_leave_nothing(scores, cuts):
    bounds = [0.0, *sorted(cuts), 1.0]
    bands = [
        chosen(scores, strategy="percentile", low=low, high=high) for low, high in pairwise(bounds)
    ]
    assert sorted(group for band in bands for group in band) == list(range(len(scores)))


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=8), st.data())
def test_no_subset_varies_more_than_the_chosen_one(values, data):
    many = data.draw(st.integers(1, len(values)))
    values = np.array(values)
    chosen = most_varied(values, many)
    best = max(values[list(subset)].var() for subset in combinations(range(len(values)), many))
    assert chosen.sum() == many
    assert values[chosen].var() == pytest.approx(best, rel=1e-9, abs=1e-12)
