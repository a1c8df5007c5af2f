"""The worth of turns, by hand and against a game whose values are enumerated."""

import numpy as np
import pytest
from lamps import exact_values, lamp_collector, lamp_tasks, make_lamp_policy

from hgrpo.evaluation.truth.measure import Measurement, truth_tasks
from hgrpo.evaluation.truth.settings import TruthConfig
from hgrpo.evaluation.truth.table import clear, quality, read_truth, reliability, true_variance
from hgrpo.evaluation.truth.values import turn_truth
from hgrpo.policy.score_sketch import ScoreSketcher


def test_values_and_errors_by_hand():
    returns = np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0]])
    truth = turn_truth(returns, final=1.0)
    np.testing.assert_allclose(truth.value_before, [0.5, 0.75])
    np.testing.assert_allclose(truth.value_after, [0.75, 1.0])
    # Sample variances 1/3 and 1/4, each divided by four continuations.
    np.testing.assert_allclose(truth.se_before, [12**-0.5, 0.25])
    np.testing.assert_allclose(truth.se_after, [0.25, 0.0])
    np.testing.assert_allclose(truth.advantage, [0.25, 0.25])
    np.testing.assert_allclose(truth.advantage_se, [(1 / 12 + 1 / 16) ** 0.5, 0.25])
    # Halves: values (0.5, 1) and (0.5, 0.5).
    np.testing.assert_allclose(truth.advantage_first, [0.5, 0.0])
    np.testing.assert_allclose(truth.advantage_second, [0.0, 0.5])


@pytest.mark.parametrize("each", [2, 3, 8])
def test_a_trajectorys_advantages_sum_to_its_return_less_the_first_value(each):
    returns = np.random.default_rng(each).random((5, each))
    truth = turn_truth(returns, final=0.7)
    assert truth.advantage.sum() == pytest.approx(0.7 - returns[0].mean())
    half = each // 2
    np.testing.assert_allclose(
        half * truth.advantage_first + (each - half) * truth.advantage_second,
        each * truth.advantage,
        atol=1e-12,
    )


def test_errors_have_the_stated_covariance():
    """Neighbours share a value with opposite signs; the halves' errors are independent."""
    rng = np.random.default_rng(0)
    draws = [turn_truth(rng.normal(size=(3, 6)), 0.0) for _ in range(20_000)]
    advantages = np.array([draw.advantage for draw in draws])
    covariance = np.cov(advantages.T)
    # Each value's variance is 1/6.
    expected = np.array([[2, -1, 0], [-1, 2, -1], [0, -1, 1]]) / 6
    np.testing.assert_allclose(covariance, expected, atol=0.01)
    mean_square = np.mean([draw.advantage_se**2 for draw in draws], axis=0)
    np.testing.assert_allclose(mean_square, np.diag(expected), rtol=0.02)
    first = np.array([draw.advantage_first for draw in draws])
    second = np.array([draw.advantage_second for draw in draws])
    assert abs((first * second).mean()) < 0.01


def test_reliability_is_the_share_of_the_variance_that_is_truth():
    rng = np.random.default_rng(1)
    true = rng.normal(size=50_000)
    first, second = (true + rng.normal(size=50_000) for _ in range(2))
    assert true_variance(first, second) == pytest.approx(1, abs=0.03)
    # The mean of the halves has noise of variance 1/2.
    assert reliability((first + second) / 2, first, second) == pytest.approx(2 / 3, abs=0.02)
    assert np.isnan(reliability(np.ones(3), np.ones(3), np.ones(3)))
    assert clear(np.array([0.4, -0.4, 0.2, 0.0]), np.array([0.1, 0.1, 0.1, 0.0])).tolist() == [
        True,
        True,
        False,
        False,
    ]


@pytest.fixture(scope="module")
def lamps(tmp_path_factory):
    """A measured policy: its groups, its truth, and the exact values of their tasks."""
    policy = make_lamp_policy(tmp_path_factory.mktemp("base"))
    config = TruthConfig(groups=3, continuations=96, sketch=64)
    measurement = Measurement(
        config,
        size=6,
        seed=5,
        round=0,
        collector=lamp_collector(policy),
        sketcher=ScoreSketcher(policy, config.sketch, 1.0),
        folder=tmp_path_factory.mktemp("scratch"),
    )
    groups = measurement.rollouts(lamp_tasks(3))
    for group in groups:
        measurement.measure(group)
    out = tmp_path_factory.mktemp("out")
    measurement.write(groups, out)
    exact = {g.step: exact_values(policy, g.trajectories[0].task) for g in groups}
    return groups, read_truth(out, groups), exact


def test_truth_is_that_of_enumeration_within_its_errors(lamps):
    groups, table, exact = lamps
    values, variances = [], []
    for group in groups:
        for trajectory in group.trajectories:
            colours = tuple(turn.action for turn in trajectory.turns)
            for turn in range(len(colours)):
                value, variance = exact[group.step][colours[:turn]]
                values.append(value)
                variances.append(variance)
    assert max(len(t.turns) for group in groups for t in group.trajectories) == 5
    # A value is nowhere certain, so errors can be compared with their exact size.
    errors = np.sqrt(np.array(variances) / 96)
    assert errors.min() > 0.01
    z = (table["value_before"].to_numpy() - values) / errors
    assert len(z) > 40
    assert abs(z).max() < 4 and 0.7 < np.sqrt((z**2).mean()) < 1.3 and abs(z.mean()) < 0.5
    true = true_advantages(groups, exact)
    measured = table["advantage"].to_numpy()
    assert np.abs(measured - true).max() < 4.5 * table["advantage_se"].to_numpy().max()
    assert np.corrcoef(measured, true)[0, 1] > 0.9


def true_advantages(groups, exact):
    rows = []
    for group in groups:
        for trajectory in group.trajectories:
            colours = tuple(turn.action for turn in trajectory.turns)
            values = [exact[group.step][colours[:turn]][0] for turn in range(len(colours))]
            rows.append(np.diff(values, append=trajectory.env_return))
    return np.concatenate(rows)


def test_halves_give_the_variance_of_the_exact_advantages(lamps):
    groups, table, exact = lamps
    first, second = (table[f"advantage_{half}"].to_numpy() for half in ("first", "second"))
    true = np.var(true_advantages(groups, exact))
    assert true_variance(first, second) == pytest.approx(true, rel=0.15)
    numbers = quality(table)
    assert numbers["continuations"] == 96 * len(table) and numbers["turns"] == len(table)
    assert numbers["reliability"] == pytest.approx(
        true / np.var(table["advantage"].to_numpy()), 0.15
    )


def test_every_policy_is_measured_on_the_same_games():
    panel = lamp_tasks(20)
    chosen = truth_tasks(panel, 8, seed=11)
    assert chosen == truth_tasks(panel, 8, seed=11) != truth_tasks(panel, 8, seed=12)
    assert len({task.task_id for task in chosen}) == 8
