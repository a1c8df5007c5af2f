"""Differences of arms with the spread between runs pooled over a study."""

import numpy as np
import pytest
from scipy import stats

from hgrpo.evaluation.differences import Runs
from hgrpo.evaluation.outcomes import Outcomes
from hgrpo.evaluation.run_spread import run_spread

SEEDS = [1, 2, 3, 4, 5]
ARMS = ("flat", "twin", "new", "other")


def played(**tables):
    """Outcomes of greedy play from arm -> success [seeds, tasks]."""
    return {
        (name, 0.0): Outcomes(np.array(table, float), np.array(table, float), SEEDS)
        for name, table in tables.items()
    }


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(0)
    rates = 0.5 + 0.1 * rng.standard_normal((4, 5, 1))
    wins = {name: rng.random((5, 50)) < rate for name, rate in zip(ARMS, rates, strict=True)}
    return played(**wins, sft=np.tile(np.arange(50) < 20, (5, 1)))


def runs_of(study, twin):
    return Runs(study, ARMS, "flat", twin, "success", 0.95)


def means(study, *names):
    return np.array([study[name, 0.0].success.mean(axis=1) for name in names])


def of_tasks(values):
    pseudo = np.hstack([values, np.tile([1, -1], (5, 1))])
    return pseudo.mean(axis=0).var(ddof=1) / 52


def test_the_twins_runs_are_runs_of_the_reference(study):
    compared = runs_of(study, "twin").difference("new", ("flat", 0.0))
    tables = [study[name, 0.0].success for name in ("flat", "twin", "new")]
    both = (tables[0] + tables[1]) / 2
    spread = run_spread(means(study, "flat", "new", "other"), means(study, "twin")[0])
    variance, freedom = spread.from_both(1, 0)
    error = np.sqrt(variance.item() + of_tasks(tables[2] - both))
    assert compared.estimate.mean == pytest.approx((tables[2] - both).mean())
    assert compared.estimate.standard_error == pytest.approx(error)
    half = stats.t.ppf(0.975, freedom.item()) * error
    assert compared.estimate.upper == pytest.approx(compared.estimate.mean + half)
    assert len(compared.tables) == 2


@pytest.mark.parametrize("baseline", ["flat", "sft", "other"])
@pytest.mark.parametrize("original", ["flat", "new"])
def test_an_arm_under_two_names_counts_once(study, baseline, original):
    twice = study | {("copy", 0.0): study[original, 0.0]}
    compared = Runs(twice, ("copy", *ARMS), "flat", "twin", "success", 0.95)
    once = runs_of(study, "twin")
    expected = once.difference("new", (baseline, 0.0)).estimate
    assert compared.difference("new", (baseline, 0.0)).estimate == expected
    if original == "new":
        assert compared.difference("copy", (baseline, 0.0)).estimate == expected


def test_the_twin_itself_is_compared_with_the_reference_alone(study):
    compared = runs_of(study, "twin").difference("twin", ("flat", 0.0))
    tables = [study[name, 0.0].success for name in ("twin", "flat")]
    assert compared.estimate.mean == pytest.approx((tables[0] - tables[1]).mean())
    spread = run_spread(means(study, "flat", "new", "other"), means(study, "twin")[0])
    assert compared.of_runs == pytest.approx(spread.of_twin(0)[0].item())
    assert compared.estimate.degrees_of_freedom <= 12 and len(compared.tables) == 1


def test_without_pooling_the_twin_is_an_arm_like_the_others(study):
    compared = runs_of(study, None).difference("new", ("flat", 0.0))
    spread = run_spread(means(study, *ARMS))
    variance, freedom = spread.difference(2, 0)
    assert compared.of_runs == pytest.approx(variance.item())
    assert compared.estimate.degrees_of_freedom == pytest.approx(freedom.item())


def test_a_fixed_policy_adds_its_games_but_no_runs(study):
    compared = runs_of(study, None).difference("new", ("sft", 0.0))
    variance, _ = run_spread(means(study, *ARMS)).level(2)
    assert compared.of_runs == pytest.approx(variance.item())
    values = study["new", 0.0].success - study["sft", 0.0].success
    error = np.sqrt(compared.of_runs + of_tasks(values))
    assert compared.estimate.standard_error == pytest.approx(error)


@pytest.mark.parametrize("seeds", [SEEDS[:4], [*SEEDS[:-1], SEEDS[-1] + 1]], ids=["fewer", "other"])
def test_arms_with_other_seeds_are_not_pooled(study, seeds):
    arm, n = study["other", 0.0], len(seeds)
    changed = study | {("other", 0.0): Outcomes(arm.success[:n], arm.returns[:n], seeds)}
    compared = runs_of(changed, None).difference("new", ("flat", 0.0))
    variance, _ = run_spread(means(study, "flat", "twin", "new")).difference(2, 0)
    assert compared.of_runs == pytest.approx(variance.item())
