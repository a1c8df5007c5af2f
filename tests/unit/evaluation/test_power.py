"""Detectable differences, repeats and the number of seeds that differences need."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from hgrpo.evaluation import power
from hgrpo.evaluation.statistics import FEWEST_SEEDS, Estimate


def estimate(mean=0.0, error=0.02, freedom=10.0):
    return Estimate(mean, 0, 0, error, freedom, 6, 500)


@pytest.mark.parametrize("freedom", [4.0, 10.0, 28.0, 104.0])
def test_the_minimum_detectable_effect_has_the_stated_power(freedom):
    size = power.minimum_detectable_effect(estimate(freedom=freedom), 5)
    limit = stats.t.isf(0.05 / 2 / 5, freedom)
    assert stats.nct.sf(limit, freedom, size / 0.02) == pytest.approx(0.8, abs=1e-6)


def test_the_minimum_detectable_effect_is_that_of_a_paired_t_test():
    # With one comparison of 11 seeds and no other variance it is the power of the t test.
    size = power.minimum_detectable_effect(estimate(error=1 / np.sqrt(11)))
    solved = TTestPower().solve_power(nobs=11, alpha=0.05, power=0.8, alternative="two-sided")
    assert size == pytest.approx(solved, rel=1e-4)


def test_a_repeat_says_the_same_by_the_noncentral_t():
    # A difference of exactly the critical value is found again in about half of the repeats.
    limit = stats.t.isf(0.025 / 7, 28)
    edge = power.repeats_alike(estimate(0.02 * limit, freedom=28), "better", 7)
    assert edge == pytest.approx(stats.nct.sf(limit, 28, limit))
    assert 0.45 < edge < 0.55
    # No difference stays inconclusive, but for the level of one comparison.
    nothing = power.repeats_alike(estimate(freedom=28), "inconclusive", 7)
    assert nothing == pytest.approx(1 - 0.05 / 7)
    worse = power.repeats_alike(estimate(-0.08, freedom=28), "worse", 7)
    assert worse == pytest.approx(stats.nct.sf(limit, 28, 4))
    assert np.isnan(power.repeats_alike(estimate(), "too few seeds", 7))
    assert power.repeats_alike(estimate(0.1, error=0.0), "better", 7) == 1


def test_the_spread_by_hand():
    # Task means 2, 1 and 1.5; beside seeds and tasks, 1, 0, -1 and -1, 0, 1 halves are left.
    spread = power.spread(np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0]]), 0.25, 3.0)
    left = np.array([[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0]])
    residual = (left**2).sum() / 2
    assert (spread.runs, spread.freedom) == (0.5, 3.0)
    assert spread.residual == pytest.approx(residual)
    # The task means vary by 0.25; half of the residual is in it.
    assert spread.tasks == pytest.approx(0.25 - residual / 2)


def test_tasks_that_vary_less_than_noise_count_as_equal():
    assert power.spread(np.array([[1.0, -1.0], [-1.0, 1.0]]), 0.1, 1.0).tasks == 0


def test_at_its_own_number_of_seeds_the_error_is_the_observed_one():
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.5, (5, 40)) + 3 * rng.normal(0, 1, 40)
    error, freedom = power.spread(values, 0.01, 28.0).error(np.array([5, 10, 50]))
    assert error[0] == pytest.approx(np.sqrt(0.01 + values.mean(axis=0).var(ddof=1) / 40))
    assert freedom.tolist() == [28, 63, 343]
    assert (np.diff(error) < 0).all()


def test_seeds_needed_by_hand():
    # Without variance of tasks and residual, a paired t test with deviation 0.05.
    spread = power.Spread(runs=0.05**2, tasks=0.0, residual=0.0, n_tasks=500, freedom=1)
    solved = TTestPower().solve_power(effect_size=1, alpha=0.05, power=0.8)
    assert power.seeds_needed(spread, 0.05) == np.ceil(solved)
    assert power.seeds_needed(spread, 0.05, family=4) > np.ceil(solved)
    # Pooled over eight arms, each seed adds seven degrees of freedom.
    pooled = power.Spread(runs=0.05**2, tasks=0.0, residual=0.0, n_tasks=500, freedom=7)
    assert power.seeds_needed(pooled, 0.05) < np.ceil(solved)


def test_seeds_needed_knows_its_limits():
    spread = power.Spread(runs=0.0001, tasks=0.25, residual=0.0, n_tasks=50, freedom=1)
    # Tasks alone leave an error of 0.07.
    assert power.seeds_needed(spread, 0.03) is None
    assert power.seeds_needed(spread, 0.9) == FEWEST_SEEDS


def test_the_table_has_the_mean_and_the_extremes_of_the_comparisons():
    spreads = [power.Spread(runs, 0.0, 0.1, 500, 7) for runs in (0.0025, 0.01)]
    table = power.seeds_table(spreads, 5, 0.95)
    middle = power.Spread(0.00625, 0.0, 0.1, 500, 7)
    row = table[table["difference"] == 0.1].iloc[0]
    assert row["seeds"] == power.seeds_needed(middle, 0.1, 2)
    assert [row["fewest"], row["most"]] == [power.seeds_needed(each, 0.1, 2) for each in spreads]
    assert (row["comparisons"], row["n_seeds"], row["power"]) == (2, 5, 0.8)


def test_runs_without_spread_have_no_table():
    assert power.seeds_table([power.Spread(0.0, 0.1, 0.1, 20, 1)] * 2, 5, 0.95).empty
    assert power.seeds_table([], 5, 0.95).empty
