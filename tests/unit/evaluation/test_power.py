"""Detectable differences and the number of seeds that they need."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hgrpo.evaluation import power, statistics


def test_minimum_detectable_effect_has_the_stated_power():
    # A difference of exactly that size must be called in about 80 % of repeats.
    rng = np.random.default_rng(11)
    tasks, called, repeats = 400, 0, 500
    flip = 0.2
    probe = rng.choice([1, -1, 0], p=[flip / 2, flip / 2, 1 - flip], size=(1, 4000))
    scaled = statistics.difference_interval(probe == 1, probe == -1)
    per_task = scaled.standard_error * np.sqrt(4000)
    reference = statistics.Estimate(0, 0, 0, per_task / np.sqrt(tasks), tasks - 1, 1, tasks)
    effect = power.minimum_detectable_effect(reference)
    for _ in range(repeats):
        probabilities = [(flip + effect) / 2, (flip - effect) / 2, 1 - flip]
        draw = rng.choice([1, -1, 0], p=probabilities, size=(1, tasks))
        called += statistics.difference_interval(draw == 1, draw == -1).lower > 0
    assert called / repeats == pytest.approx(0.8, abs=0.06)


def test_minimum_detectable_effect_grows_with_its_family():
    estimate = statistics.Estimate(0, 0, 0, 0.02, 10, 3, 500)
    # Quantiles of t with 10 degrees of freedom: 2.2281 at 0.975, 3.1693 at 0.995, 0.8791 at 0.8.
    assert power.minimum_detectable_effect(estimate) == pytest.approx(0.02 * 3.1072, rel=1e-4)
    of_five = power.minimum_detectable_effect(estimate, 5)
    assert of_five == pytest.approx(0.02 * 4.0484, rel=1e-4)


def test_a_difference_of_the_detectable_size_survives_holm_alone():
    estimate = statistics.Estimate(0, 0, 0, 0.02, 10, 3, 500)
    size = power.minimum_detectable_effect(estimate, 5)
    p_value = 2 * stats.t.sf(size / estimate.standard_error, estimate.degrees_of_freedom)
    assert statistics.holm([p_value, 1, 1, 1, 1])[0] < 0.05
    assert statistics.holm([2 * p_value, 1, 1, 1, 1])[0] == pytest.approx(10 * p_value)


def test_the_spread_by_hand():
    # Seed means 2 and 1, task means 2, 1 and 1.5; what is left is 1, 0, -1 and -1, 0, 1.
    found = power.spread(np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0]]))
    left = np.array([[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0]])
    residual = (left**2).sum() / 2
    assert found.seeds == pytest.approx(0.5)
    assert found.residual == pytest.approx(residual)
    # The task means vary by 0.25; half of the residual is in it.
    assert found.tasks == pytest.approx(0.25 - residual / 2)


def test_tasks_that_vary_less_than_noise_count_as_equal():
    assert power.spread(np.array([[1.0, -1.0], [-1.0, 1.0]])).tasks == 0


@pytest.mark.parametrize("shape", [(1, 5), (3, 1)])
def test_one_seed_or_one_task_has_no_spread(shape):
    with pytest.raises(ValueError, match="two seeds and two tasks"):
        power.spread(np.zeros(shape))


@settings(max_examples=60)
@given(st.integers(2, 6), st.integers(3, 40), st.floats(0.2, 2), st.integers(0, 10_000))
def test_at_its_own_number_of_seeds_the_error_is_the_observed_one(seeds, tasks, noise, draw):
    rng = np.random.default_rng(draw)
    values = rng.normal(0, noise, (seeds, tasks)) + 3 * rng.normal(0, 1, tasks)
    found = power.spread(values)
    error, freedom = found.error(np.array([seeds]))
    observed = statistics.two_level_variance(values)
    if found.tasks > 0:
        assert (error[0], freedom[0]) == pytest.approx(observed)
    else:
        assert error[0] >= observed[0]
    more = found.error(np.array([seeds, 2 * seeds, 10 * seeds]))[0]
    assert (np.diff(more) < 0).all()


def test_seeds_needed_by_hand():
    # Without variance of tasks and residual, the error is the seeds' deviation over root S with
    # S - 1 degrees of freedom: a plain t test.
    found = power.Spread(seeds=0.05**2, tasks=0.0, residual=0.0, n_tasks=500)

    def effect(n):
        quantiles = stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)
        return quantiles * 0.05 / np.sqrt(n)

    needed = power.seeds_needed(found, 0.05)
    assert effect(needed) <= 0.05 < effect(needed - 1)
    # A family of four divides the level by four.
    assert power.seeds_needed(found, 0.05, family=4) > needed


def test_few_tasks_need_more_than_any_number_of_seeds():
    found = power.Spread(seeds=0.0001, tasks=0.25, residual=0.0, n_tasks=50)
    assert power.seeds_needed(found, 0.03) is None
    assert power.seeds_needed(found, 0.3) == 2


def test_the_number_of_seeds_has_the_stated_power():
    rng = np.random.default_rng(5)
    tasks, noise, by_seed, by_task = 300, 0.4, 0.03, 0.2
    # The variance between seeds' means contains the noise of the tasks.
    found = power.Spread(by_seed**2 + noise**2 / tasks, by_task**2, noise**2, tasks)
    seeds, effect, called = power.seeds_needed(found, 0.06), 0.06, 0
    for _ in range(600):
        values = effect + rng.normal(0, noise, (seeds, tasks)) + rng.normal(0, by_task, tasks)
        values += rng.normal(0, by_seed, (seeds, 1))
        called += statistics.mean_interval(values).lower > 0
    assert 0.75 < called / 600 < 0.95


def test_the_table_pools_the_comparisons():
    rng = np.random.default_rng(2)
    tables = [rng.normal(0, 0.3, (3, 100)) + rng.normal(0, sd, (3, 1)) for sd in (0.01, 0.08)]
    table = power.seeds_table(tables, 0.95)
    assert table["difference"].tolist() == [0.03, 0.05, 0.10]
    assert table["seeds"].is_monotonic_decreasing and (table["comparisons"] == 2).all()
    spreads = [power.spread(values) for values in tables]
    middle = power.pooled(spreads)
    assert middle.seeds == pytest.approx((spreads[0].seeds + spreads[1].seeds) / 2)
    expected = power.seeds_needed(middle, 0.1, 2)
    alone = [power.seeds_needed(each, 0.1, 2) for each in spreads]
    row = table.iloc[2]
    assert (row["seeds"], row["fewest"], row["most"]) == (expected, min(alone), max(alone))


def test_a_number_of_seeds_beyond_the_most_is_missing():
    rng = np.random.default_rng(2)
    table = power.seeds_table([rng.normal(0, 3, (3, 20))], 0.95)
    assert table["seeds"].isna().all() and table["most"].isna().all()


# Two seeds that each win one task of three, and another one.
SAME = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("tables", [[], [np.zeros((1, 50))], [np.zeros((2, 50))], [SAME, SAME]])
def test_without_a_spread_between_seeds_there_is_no_table(tables):
    assert power.seeds_table(tables, 0.95).empty


def test_a_comparison_whose_seeds_agree_is_not_the_one_that_needs_the_fewest():
    differing = np.random.default_rng(2).normal(0, 0.3, (2, 100))
    alone = power.seeds_needed(power.spread(differing), 0.1, 2)
    table = power.seeds_table([differing, np.zeros((2, 100))], 0.95)
    assert table.iloc[2]["fewest"] == table.iloc[2]["most"] == alone
