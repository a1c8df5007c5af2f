"""Statistics against hand computation, textbooks and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from hgrpo.evaluation import differences, statistics


def difference(method, baseline):
    """The interval of two arms that a study compares with no others."""
    tables = {"method": np.asarray(method, float), "baseline": np.asarray(baseline, float)}
    return differences.contrast(tables, {"method": 1, "baseline": -1}, "success", 0.95)


def logistic(x):
    return 1 / (1 + np.exp(-x))


def test_two_level_variance_by_hand():
    # Seed means 0.5 and 0.25: variance 1/32, over 2 seeds 1/64.
    # Task means 1, .5, 0, 0: mean 3/8, squares sum 11/16, variance 11/48, over 4 tasks 11/192.
    error, freedom = statistics.two_level_variance([[1, 1, 0, 0], [1, 0, 0, 0]])
    v_seeds, v_tasks = 1 / 64, 11 / 192
    assert error**2 == pytest.approx(v_seeds + v_tasks)
    assert freedom == pytest.approx((v_seeds + v_tasks) ** 2 / (v_seeds**2 / 1 + v_tasks**2 / 3))


def test_one_seed_is_the_ordinary_standard_error():
    values = np.array([[1.0, 0.0, 0.0, 1.0, 1.0]])
    error, freedom = statistics.two_level_variance(values)
    assert error == pytest.approx(stats.sem(values[0]))
    assert freedom == 4


def test_difference_interval_by_hand():
    # 98 tasks, the method alone solves 10, the baseline alone 4: mean 6/98.
    method, baseline = np.zeros((1, 98)), np.zeros((1, 98))
    method[0, :10] = 1
    baseline[0, 10:14] = 1
    estimate = difference(method, baseline)
    # With the two pseudo-tasks: 11 pluses and 5 minuses among 100.
    variance = (16 - 100 * 0.06**2) / 99 / 100
    assert estimate.mean == pytest.approx(6 / 98)
    assert estimate.standard_error == pytest.approx(np.sqrt(variance))
    half = stats.t.ppf(0.975, 99) * np.sqrt(variance)
    assert estimate.upper - estimate.mean == pytest.approx(half)
    assert estimate.mean - estimate.lower == pytest.approx(half)


def test_mean_interval_by_hand():
    # Seed means 0.5 and 0.3, task means 0.8, 0.4 and 0: variances 0.02 / 2 and 0.16 / 3.
    interval = statistics.mean_interval([[0.9, 0.6, 0.0], [0.7, 0.2, 0.0]])
    error = (0.01 + 0.16 / 3) ** 0.5
    freedom = error**4 / (0.01**2 / 1 + (0.16 / 3) ** 2 / 2)
    half = error * stats.t.ppf(0.975, freedom)
    assert interval.mean == pytest.approx(0.4)
    assert (interval.lower, interval.upper) == pytest.approx((0.4 - half, 0.4 + half))
    assert (interval.n_seeds, interval.n_tasks) == (2, 3)


def test_the_mean_of_equal_values_has_no_width():
    interval = statistics.mean_interval([[0.5, 0.5], [0.5, 0.5]])
    assert (interval.lower, interval.mean, interval.upper) == (0.5, 0.5, 0.5)


def test_identical_policies_keep_a_width_and_are_inconclusive():
    same = np.tile([1.0, 0.0, 1.0, 1.0], (3, 25))
    estimate = difference(same, same)
    assert estimate.mean == 0
    assert estimate.lower < 0 < estimate.upper
    assert statistics.verdict(estimate.mean, estimate.p_value, 5) == "inconclusive"


def test_five_discordant_pairs_are_not_significant():
    # The exact sign test gives 2 / 2^5 = 0.0625; the paired interval must not be bolder.
    method, baseline = np.zeros((1, 500)), np.zeros((1, 500))
    method[0, :5] = 1
    estimate = difference(method, baseline)
    assert estimate.lower < 0


def test_interval_and_p_value_agree():
    rng = np.random.default_rng(3)
    for shift in np.linspace(0, 0.15, 12):
        method, baseline = (
            rng.random((3, 200)) < 0.4 + shift,
            rng.random((3, 200)) < 0.4,
        )
        estimate = difference(method, baseline)
        outside = estimate.lower > 0 or estimate.upper < 0
        assert outside == (estimate.p_value < 0.05)


def test_wilson_by_hand():
    # 8 of 10, z = 1.96: centre (0.8 + z^2 / 20) / (1 + z^2 / 10).
    z = stats.norm.ppf(0.975)
    centre = (0.8 + z**2 / 20) / (1 + z**2 / 10)
    half = z / (1 + z**2 / 10) * np.sqrt(0.8 * 0.2 / 10 + z**2 / 400)
    assert statistics.wilson_interval(8, 10) == pytest.approx((centre - half, centre + half))


def test_rate_of_one_seed_is_wilson():
    success = np.array([[1] * 8 + [0] * 2])
    estimate = statistics.rate_interval(success)
    assert (estimate.lower, estimate.upper) == pytest.approx(statistics.wilson_interval(8, 10))


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_rate_at_the_edge_keeps_a_width_inside_bounds(rate):
    estimate = statistics.rate_interval(np.full((3, 100), rate))
    assert estimate.mean == rate
    assert 0 <= estimate.lower <= rate <= estimate.upper <= 1
    assert 0.005 < estimate.upper - estimate.lower < 0.1


def test_rate_of_two_very_different_seeds_stays_a_probability():
    success = np.vstack([np.ones(200), np.zeros(200)])
    estimate = statistics.rate_interval(success)
    assert 0 <= estimate.lower < 0.05 and 0.95 < estimate.upper <= 1


def test_two_seeds_take_the_t_quantile_of_one_degree_of_freedom():
    success = np.vstack([np.arange(500) < 200, np.arange(500) < 300])
    estimate = statistics.rate_interval(success)
    quantile = stats.t.ppf(0.975, estimate.degrees_of_freedom)
    assert 10 < quantile < 12.7
    # Wilson's ends solve (p - x)^2 = z^2 x (1 - x) / n at the effective sample size.
    effective = 0.25 / estimate.standard_error**2
    for end in (estimate.lower, estimate.upper):
        assert (0.5 - end) ** 2 == pytest.approx(quantile**2 * end * (1 - end) / effective)


def test_holm_by_hand():
    # Sorted .01 .03 .04 times 3, 2, 1, made monotone: .03, .06, .06.
    assert statistics.holm([0.03, 0.01, 0.04]) == pytest.approx([0.06, 0.03, 0.06])
    assert statistics.holm([]) == []


@given(
    st.lists(st.sampled_from([0.0, 1e-9, 0.001, 0.02, 0.02, 0.3, 1.0, float("nan")]), min_size=1)
)
def test_holm_is_that_of_statsmodels(p_values):
    expected = multipletests(p_values, method="holm")[1]
    np.testing.assert_array_equal(statistics.holm(p_values), expected)


def test_differences_and_equivalence_share_one_level():
    # Two pairs: two of four hypotheses may be true until both of a pair are rejected.
    different, equivalent = statistics.of_pairs([0.001, 0.3], [0.02, 0.015])
    assert different == pytest.approx([0.002, 0.3])
    # 0.001 x 2, 0.015 x 2, 0.02 x 2, and 0.3 x 1, because of the first pair nothing is left.
    assert equivalent == pytest.approx([0.04, 0.03])
    assert statistics.of_pairs([0.03, 0.01, 0.04], []) == (pytest.approx([0.06, 0.03, 0.06]), [])
    assert statistics.of_pairs([], []) == ([], [])


def test_false_claims_of_either_kind_are_rare_together():
    """Of four pairs, two do not differ and two differ by exactly the margin."""
    rng, repeats, margin, errors = np.random.default_rng(8), 4000, 3.0, 0
    truth = np.array([0.0, 0.0, margin, -margin])
    observed = truth + rng.standard_normal((repeats, 4))
    for row in observed:
        different = 2 * stats.norm.sf(np.abs(row))
        equivalent = stats.norm.sf(margin - np.abs(row))
        claims = statistics.of_pairs(different.tolist(), equivalent.tolist())
        errors += min(*claims[0][:2], *claims[1][2:]) < 0.05
    assert statistics.wilson_interval(errors, repeats, 0.001)[0] < 0.05


@pytest.mark.parametrize(
    ("mean", "p", "expected"),
    [
        (0.1, 0.01, "better"),
        (-0.1, 0.01, "worse"),
        (0.1, 0.05, "inconclusive"),
        (0.0, 0.01, "inconclusive"),
    ],
)
def test_verdict(mean, p, expected):
    assert statistics.verdict(mean, p, 5) == expected
    assert statistics.verdict(mean, p, 4) == "too few seeds"
    assert statistics.verdict(mean, p, 1) == "one seed"


def test_probability_of_improvement_by_hand():
    # Panel successes 3, 2, 1 against 2, 1, 1: wins 3 + 2 + 0, ties 0 + 1 + 2, of 9 pairs.
    method = [[1, 1, 1], [1, 1, 0], [1, 0, 0]]
    baseline = [[1, 1, 0], [1, 0, 0], [0, 0, 1]]
    expected = (5 + 0.5 * 3) / 9
    assert statistics.probability_of_improvement(method, baseline) == pytest.approx(expected)
    assert statistics.probability_of_improvement([[1, 0]], [[0, 1]]) is None


@settings(max_examples=50)
@given(
    st.integers(1, 4),
    st.integers(2, 30),
    st.floats(0, 1),
    st.integers(0, 10_000),
    st.booleans(),
)
def test_difference_is_antisymmetric_and_order_free(seeds, tasks, rate, draw, shuffle_seeds):
    rng = np.random.default_rng(draw)
    method, baseline = (
        rng.random((seeds, tasks)) < rate,
        rng.random((seeds, tasks)) < 0.5,
    )
    forward = difference(method, baseline)
    backward = difference(baseline, method)
    assert forward.mean == pytest.approx(-backward.mean)
    assert forward.lower == pytest.approx(-backward.upper)
    rows = rng.permutation(seeds) if shuffle_seeds else np.arange(seeds)
    columns = rng.permutation(tasks)
    shuffled = difference(method[np.ix_(rows, columns)], baseline[np.ix_(rows, columns)])
    assert shuffled.lower == pytest.approx(forward.lower)


def simulate(rng, seeds, tasks, between_seeds):
    """Success tables of two methods: task difficulty shared, seed effects of each method own."""
    difficulty = rng.normal(0, 1.5, tasks)
    shift = 0.3 + rng.normal(0, 0.7, tasks)
    base = logistic(difficulty + rng.normal(0, between_seeds, (seeds, 1)))
    new = logistic(difficulty + shift + rng.normal(0, between_seeds, (seeds, 1)))
    return rng.random((seeds, tasks)) < new, rng.random((seeds, tasks)) < base


def truth(between_seeds):
    """Expected success of the method and of the baseline under `simulate`."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    base = weights @ logistic(nodes * np.hypot(1.5, between_seeds))
    new = weights @ logistic(0.3 + nodes * np.sqrt(1.5**2 + 0.7**2 + between_seeds**2))
    return new, base


@pytest.mark.parametrize(
    ("seeds", "between_seeds", "lowest"),
    [
        (1, 0.0, 0.93),
        (3, 0.6, 0.90),
        (5, 0.25, 0.92),
        # Two seeds that differ a lot: the spread between them is estimated from one number.
        (2, 0.25, 0.86),
    ],
)
def test_coverage_of_the_intervals_on_500_tasks(seeds, between_seeds, lowest):
    rng = np.random.default_rng(20)
    new, base = truth(between_seeds)
    repeats, difference_hits, rate_hits = 500, 0, 0
    for _ in range(repeats):
        method, baseline = simulate(rng, seeds, 500, between_seeds)
        estimate = difference(method, baseline)
        difference_hits += estimate.lower <= new - base <= estimate.upper
        rate = statistics.rate_interval(method)
        rate_hits += rate.lower <= new <= rate.upper
    coverage = difference_hits / repeats
    print(
        f"seeds {seeds} sd {between_seeds}: difference {coverage:.3f} "
        f"rate {rate_hits / repeats:.3f}"
    )
    assert coverage >= lowest
    assert rate_hits / repeats >= lowest


@pytest.mark.parametrize(
    ("seeds", "collapse", "lowest"), [(1, 0.0, 0.93), (3, 0.0, 0.92), (5, 0.2, 0.9)]
)
def test_coverage_of_the_intervals_of_areas(seeds, collapse, lowest):
    """Cells are means over five rounds of one run, which share the task and the seed's luck.

    A share `collapse` of the runs wins nothing any more from one of the last four rounds on.
    """
    rng = np.random.default_rng(6)
    between = 0.25 if seeds > 1 else 0.0
    gains = np.linspace(-0.5, 0.7, 5)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    alive = 1 - collapse * np.arange(5) / 4

    def mean(shift, spread):
        rounds = [weights @ logistic(shift + gain + nodes * spread) for gain in gains]
        return np.mean(alive * rounds)

    rate = mean(0.2, np.sqrt(1.5**2 + 0.7**2 + between**2))
    base = mean(0.0, np.hypot(1.5, between))
    repeats, difference_hits, rate_hits = 400, 0, 0
    for _ in range(repeats):
        difficulty, shift = rng.normal(0, 1.5, 300), 0.2 + rng.normal(0, 0.7, 300)
        tables = []
        for arm_rate in (difficulty + shift, difficulty):
            luck = rng.normal(0, between, (1, seeds, 1))
            chance = logistic(arm_rate + luck + gains[:, None, None])
            end = np.where(rng.random(seeds) < collapse, rng.integers(1, 5, seeds), 5)
            chance = chance * (np.arange(5)[:, None] < end)[:, :, None]
            tables.append((rng.random((5, seeds, 300)) < chance).mean(axis=0))
        estimate = difference(*tables)
        difference_hits += estimate.lower <= rate - base <= estimate.upper
        arm_rate = statistics.rate_interval(tables[0])
        rate_hits += arm_rate.lower <= rate <= arm_rate.upper
    print(
        f"area, seeds {seeds} collapse {collapse}: {difference_hits / repeats:.3f} "
        f"{rate_hits / repeats:.3f}"
    )
    assert difference_hits / repeats >= lowest
    # Five runs often show no collapse, and then an arm's own interval does not know of it.
    assert (rate_hits / repeats >= lowest) == (collapse == 0)


def test_the_rate_of_one_seeds_means_uses_their_own_variance():
    values = np.tile([0.4, 0.6], (1, 50))
    interval = statistics.rate_interval(values)
    whole = statistics.rate_interval(np.round(values))
    # Means that hardly vary say more than zeros and ones of the same rate.
    assert interval.mean == pytest.approx(0.5) and whole.mean == 0.5
    assert interval.upper - interval.lower < 0.5 * (whole.upper - whole.lower)


def test_p_values_of_differences_that_do_not_vary():
    same = statistics.mean_interval(np.zeros((3, 10)))
    assert same.p_value == 1
    assert statistics.mean_interval(np.full((3, 10), 0.25)).p_value == 0


def test_equal_areas_tie_although_their_sums_differ_in_the_last_bit():
    one, other = [[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]], [[0.3, 0.2, 0.1], [0.3, 0.2, 0.1]]
    assert sum(one[0]) != sum(other[0])
    assert statistics.probability_of_improvement(one, other) == 0.5


def test_an_a_a_pair_is_called_about_as_often_as_stated():
    """Two arms with the same distribution: a verdict falls in at most about 5 % of studies."""
    rng = np.random.default_rng(4)
    called, repeats = 0, 600
    for _ in range(repeats):
        difficulty = rng.normal(0, 1.5, 300)
        runs = logistic(difficulty + rng.normal(0, 0.2, (6, 1)))
        success = rng.random((6, 300)) < runs
        estimate = difference(success[:3], success[3:])
        called += estimate.p_value < 0.05
    print(f"A/A verdicts: {called / repeats:.3f}")
    assert called / repeats < 0.07
