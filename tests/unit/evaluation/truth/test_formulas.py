"""Correlations, signs, the shuffled null and gradients: by hand, and against simulated truth."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.evaluation.truth.gradients import cosine, expected
from hgrpo.evaluation.truth.measured import OTHER, MeasuredTruth, action_kind, common_kinds
from hgrpo.evaluation.truth.resampling import estimate, ratio, resamples, sums_by_group
from hgrpo.evaluation.truth.scoring import (
    best_scale,
    error_rows,
    pearson,
    score,
    sign_accuracy,
    sign_hits,
)
from hgrpo.evaluation.truth.shuffled import (
    shuffled_pearson,
    shuffled_signs,
    shuffled_spread,
    trajectory_means,
)

ONCE = np.ones((1, 1))


def alone(values):
    return np.zeros(len(values), dtype=int)


def test_a_correlation_by_hand():
    credit, truth = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    # cov(credit, truth) = 1/3, var(credit) = 2/3, and the halves' covariance is 4/9.
    halves = np.array([0.0, 3.0, 2.0]), np.array([2.0, 3.0, 2.0])
    value = pearson(credit, truth, halves, alone(truth), ONCE)
    assert value == pytest.approx((1 / 3) / np.sqrt(2 / 3 * 4 / 9))
    # Halves that go against each other show no truth.
    assert np.isnan(pearson(credit, truth, (truth, -truth), alone(truth), ONCE))


@pytest.mark.parametrize(("strength", "routine"), [(0.0, 0.0), (0.4, 0.7), (0.9, 0.0)])
def test_the_noise_of_the_truth_is_corrected(strength, routine):
    rng = np.random.default_rng(0)
    true, noise = rng.normal(size=(2, 40_000))
    true = np.where(rng.random(40_000) < routine, 0.0, true)
    true /= true.std()
    credit = 7 * (strength * true + np.sqrt(1 - strength**2) * noise) + 3
    halves = tuple(true + 2 * rng.normal(size=true.shape) for _ in range(2))
    truth = sum(halves) / 2
    value = pearson(credit, truth, halves, alone(truth), ONCE)[0]
    assert value == pytest.approx(strength, abs=0.05)
    assert abs(np.corrcoef(credit, truth)[0, 1]) < 0.7 * strength + 0.02


@given(st.integers(0, 2**32 - 1))
def test_a_resample_counts_a_group_as_often_as_it_was_drawn(seed):
    rng = np.random.default_rng(seed)
    owner = np.repeat([0, 1, 2], [3, 4, 2])
    credit, truth, first, second = rng.normal(size=(4, 9))
    weights = np.array([[2.0, 0.0, 1.0]])
    rows = np.concatenate([np.flatnonzero(owner == k) for k in (0, 0, 2)])
    halves = first[rows], second[rows]
    plain = pearson(credit[rows], truth[rows], halves, alone(rows), ONCE)
    weighted = pearson(credit, truth, (first, second), owner, weights)
    np.testing.assert_allclose(weighted, plain, equal_nan=True, rtol=1e-6)
    clear = np.abs(truth) > 0.3
    np.testing.assert_allclose(
        sign_accuracy(credit, truth, clear, owner, weights),
        sign_accuracy(credit[rows], truth[rows], clear[rows], alone(rows), ONCE),
        equal_nan=True,
    )


def test_resamples_and_intervals():
    weights = resamples(9, 400)
    assert weights.shape == (401, 9) and (weights[0] == 1).all()
    assert (weights.sum(axis=1) == 9).all()
    np.testing.assert_array_equal(weights, resamples(9, 400))
    # Too few groups for an interval.
    np.testing.assert_array_equal(resamples(7, 400), np.ones((1, 7)))
    assert np.isnan(estimate(np.array([7.0]))[1:]).all()
    values = np.concatenate([[7.0], np.linspace(0, 1, 1001)])
    assert estimate(values) == pytest.approx((7, 0.025, 0.975))
    values[-40:] = np.inf
    assert estimate(values) == (7, pytest.approx(0.025), np.inf)
    values[1:100] = np.nan
    assert np.isnan(estimate(values)[1:]).all() and estimate(values)[0] == 7
    np.testing.assert_array_equal(
        sums_by_group(np.array([[1.0, 2.0, 4.0]]), np.array([0, 2, 2]), 3), [[1], [0], [6]]
    )
    np.testing.assert_array_equal(ratio(np.ones(3), np.array([2.0, 0, -1])), [0.5, np.nan, np.nan])


def test_signs_by_hand():
    advantage, truth = np.array([2.0, -1, 0, 3]), np.array([0.1, 0.4, -2, -1])
    assert sign_hits(advantage, truth).tolist() == [1, 0, 0.5, 0]
    clear = np.array([True, True, True, False])
    assert sign_accuracy(advantage, truth, clear, alone(truth), ONCE) == [0.5]
    assert np.isnan(sign_accuracy(advantage, truth, np.zeros(4, bool), alone(truth), ONCE))


LENGTHS = np.array([3, 1, 2, 2])
OWNER = np.array([0, 0, 0, 0, 1, 1, 1, 1])


def in_all_orders(values):
    """`values` [8], with the turns of each trajectory of `LENGTHS` in every order."""
    ends = np.cumsum(LENGTHS)
    parts = [permutations(range(end - n, end)) for end, n in zip(ends, LENGTHS, strict=True)]
    return [values[np.concatenate(order)] for order in product(*parts)]


def test_the_shuffled_truth_is_the_mean_over_all_orders():
    first, second, truth = np.random.default_rng(5).normal(size=(3, 8))
    sketches = np.random.default_rng(6).normal(size=(8, 5))
    weights = np.array([[1.0, 1.0], [2.0, 1.0]])
    counts = weights[:, OWNER]

    def mean(values):
        return counts @ values / counts.sum(axis=1)

    both = [mean(values * second) for values in in_all_orders(first)]
    above = np.mean(both, axis=0) - mean(first) * mean(second)
    below = mean(first * second) - mean(first) * mean(second)
    value = shuffled_pearson((first, second), LENGTHS, OWNER, weights)
    np.testing.assert_allclose(value, np.where(below > 0, above / below, np.nan))

    clear = np.array([1, 1, 0, 1, 0, 1, 1, 1], dtype=bool)
    signs = [sign_accuracy(values, truth, clear, OWNER, weights) for values in in_all_orders(truth)]
    value = shuffled_signs(truth, clear, LENGTHS, OWNER, weights)
    np.testing.assert_allclose(value, np.mean(signs, axis=0))

    pairs = zip(in_all_orders(first), in_all_orders(second), strict=True)
    lengths = np.mean([(one @ sketches) @ (two @ sketches) for one, two in pairs])
    mean_first, mean_second = (trajectory_means(half, LENGTHS) for half in (first, second))
    spread = shuffled_spread((first, second), sketches, LENGTHS)
    assert spread[1] == 0
    value = (mean_first @ sketches) @ (mean_second @ sketches) + spread.sum()
    assert value == pytest.approx(lengths)


def test_the_shuffled_truth_by_hand():
    lengths, owner, weights = np.array([2, 2]), np.array([0, 0, 1, 1]), np.ones((1, 2))

    def null(truth):
        return shuffled_pearson((truth, truth), lengths, owner, weights)[0]

    # Only which turn differs: shuffling leaves nothing. Only which trajectory: it changes nothing.
    assert null(np.array([1.0, -1, -1, 1])) == 0
    assert null(np.array([1.0, 1, -1, -1])) == 1
    # Means +-1 and +-1 around them: half of the variance is between the trajectories.
    assert null(np.array([2.0, 0, -2, 0])) == 0.5


def test_the_shuffled_truth_is_free_of_noise():
    rng = np.random.default_rng(3)
    lengths = np.full(4000, 3)
    between = rng.normal(size=4000).repeat(3)
    true = between + np.sqrt(2) * rng.normal(size=12_000)
    halves = tuple(true + rng.normal(size=12_000) for _ in range(2))
    owner = np.arange(4000).repeat(3)
    value = shuffled_pearson(halves, lengths, owner, np.ones((1, 4000)))
    # A shuffled turn is itself in one case of three: (1 + 2/3) / 3.
    assert value[0] == pytest.approx(5 / 9, abs=0.03)


def test_gradients_by_hand():
    of_method, true = np.array([[1.0, 0], [1, 0]]), np.array([[1.0, 1], [1, 1]])
    weights = np.ones((1, 2))
    args = of_method @ of_method.T, of_method @ true.T, true @ true.T, weights
    assert cosine(*args) == pytest.approx(0.5**0.5)
    assert cosine(*args, 7) == pytest.approx(0.5**0.5)
    moments = expected(*args)
    # mu = (1, 0), nu = (1, 1), no variance. Scaled by 2, mu agrees with nu along nu; (2, 0) is
    # sqrt(2) away from (1, 1), which is as long as nu.
    assert moments.cosine() == pytest.approx(0.5**0.5) and moments.bias() == pytest.approx(1)
    assert moments.variance == pytest.approx(0) and np.isnan(moments.signal_to_noise(8))
    away = expected(of_method @ of_method.T, -of_method @ true.T, true @ true.T, weights)
    assert away.bias() == away.relative_variance(8) == np.inf
    assert away.cosine() == pytest.approx(-(0.5**0.5))
    assert cosine(
        of_method @ of_method.T, -of_method @ true.T, true @ true.T, weights
    ) == pytest.approx(-(0.5**0.5))


def test_moments_of_noisy_gradients():
    rng = np.random.default_rng(0)
    mu, nu = np.zeros(60), np.zeros(60)
    mu[:2], nu[0] = (0.6, 0.8), 2.0
    of_method = mu + rng.normal(size=(3000, 60)) * 0.5
    true = nu + rng.normal(size=(3000, 60)) * 0.3
    moments = expected(
        of_method @ of_method.T, of_method @ true.T, true @ true.T, np.ones((1, 3000))
    )
    variance = 60 * 0.25
    assert moments.signal == pytest.approx(1, rel=0.05)
    assert moments.variance == pytest.approx(variance, rel=0.02)
    assert moments.truth == pytest.approx(4, rel=0.02)
    assert moments.cosine() == pytest.approx(0.6, rel=0.05)
    assert moments.bias() == pytest.approx(4 / 3, rel=0.1)
    assert moments.signal_to_noise(30) == pytest.approx(30 / variance, rel=0.06)
    assert moments.cosine(15) == pytest.approx(0.6 / np.sqrt(1 + variance / 15), rel=0.05)
    # c mu is (2, 8/3, 0 ...), so c^2 = 100/9, and |nu|^2 = 4.
    assert moments.relative_variance(10) == pytest.approx(100 / 9 * variance / 10 / 4, rel=0.1)


def test_a_group_drawn_twice_is_no_pair_with_itself():
    rng = np.random.default_rng(1)
    of_method = rng.normal(size=(40, 500))
    moments = expected(
        of_method @ of_method.T,
        of_method @ of_method.T,
        of_method @ of_method.T,
        resamples(40, 300),
    )
    # No signal: its estimates scatter around 0, although a resample holds groups several times.
    assert abs(moments.signal[1:].mean()) < 3 and (moments.variance > 400).all()


def truth_of(advantage, kinds, turn, error=0.01):
    n = len(advantage)
    return MeasuredTruth(
        advantage=advantage,
        error=np.full(n, error),
        first=advantage,
        second=advantage,
        sketches=np.eye(n),
        owner=np.arange(n) // 2,
        turn=turn,
        kind=np.array(kinds, dtype=object),
        lengths=np.full(n // 2, 2),
    )


def test_errors_by_hand():
    truth = truth_of(
        np.array([1.0, 0, -1, 2]), ["go", "take", "go", "take"], np.array([0, 1, 0, 1])
    )
    advantage = np.array([2.0, 0, 2, 0])
    # The best factor is (2 - 2) / 8 = 0, so the error is the truth itself, with the other sign.
    assert best_scale(advantage, truth.advantage) == 0
    rows = {(row["by"], row["key"]): row for row in error_rows(advantage, truth)}
    assert set(rows) == {("turn", 1), ("turn", 2), ("action", "go"), ("action", "take")}
    assert rows["turn", 1] == rows["action", "go"] | {"by": "turn", "key": 1}
    assert rows["turn", 1] == {
        "by": "turn",
        "key": 1,
        "turns": 2,
        "clear_turns": 2,
        "sign_accuracy": 0.5,
        "mean_truth": 0.0,
        "mean_error": 0.0,
    }
    # Of the second turns, the one worth 0 is not clear, and of the other nothing was said.
    assert rows["turn", 2]["sign_accuracy"] == 0.5 and rows["turn", 2]["mean_error"] == -1
    assert best_scale(np.array([2.0, 0, 0, 4]), truth.advantage) == pytest.approx(10 / 20)
    part = error_rows(np.array([2.0, 0, np.nan, np.nan]), truth)
    assert [row["turns"] for row in part] == [1, 1, 1, 1]


def test_what_is_equal_within_a_trajectory_is_0_without_its_mean():
    truth = truth_of(np.array([1.0, 3, -1, 2]), ["go"] * 4, np.array([0, 1, 0, 1]))
    np.testing.assert_array_equal(truth.within.advantage, [-1, 1, -1.5, 1.5])
    rounded = np.array([0.1, np.float32(0.1), 7, 7])
    assert truth.centred(rounded).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("truth", "credit", "verdict"),
    [
        ([2.0, -1], [2.0, -1], "yes"),
        ([2.0, -1], [1.0, 1], "no"),  # the same for all turns: it knows nothing of them
        ([1.0, 1], [2.0, -1], ""),  # all turns of a trajectory are worth the same: nothing to know
    ],
)
def test_what_beats_the_shuffled_truth(truth, credit, verdict):
    sign = np.where(np.arange(16) % 2, -1.0, 1.0)[:, None]
    worth, credit = ((sign * values).ravel() for values in (truth, credit))
    measured = truth_of(worth, ["go"] * 32, np.arange(32) % 2)
    assert score(credit, credit, measured)["beats_shuffled"] == verdict


def test_the_kind_of_an_action_is_its_first_word():
    actions = [
        ("Go to desk 1", True),
        ("click[b07xyz]", True),
        ("", True),
        ("7 up", True),
        ("go", False),
    ]
    kinds = [action_kind(*each) for each in actions]
    assert kinds == ["go", "click", "(no word)", "(no word)", "(not admissible)"]


def test_rare_kinds_share_a_row():
    kinds = [f"k{i}" for i in range(14) for _ in range(20 - i)]
    kinds_shown = common_kinds(kinds)
    assert set(kinds_shown) == {f"k{i}" for i in range(12)} | {OTHER}
    assert (kinds_shown == OTHER).sum() == 8 + 7
