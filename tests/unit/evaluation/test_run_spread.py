"""The spread between runs, pooled over arms, against hand computation, oracles and simulation."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.formula.api import ols
from verdicts import CELL, Cell, measure, summary

from hgrpo.evaluation.run_spread import run_spread
from hgrpo.evaluation.statistics import wilson_interval


def test_the_variances_by_hand():
    # Seed means 1, 2, 3, arm means 1, 2, 3; left are 1, 0, -1 for the first, the opposite for the
    # second and nothing for the third: a residual of 4 with 4 degrees of freedom.
    runs = np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 4.0], [2.0, 3.0, 4.0]])
    spread = run_spread(runs)
    assert (spread.freedom, spread.pooled) == (4, pytest.approx(1))
    # An arm's residuals over 2 are 1, 1 and 0. The own variance is three times what 1/3 leaves.
    assert spread.arms.tolist() == pytest.approx([2, 2, 1])
    assert spread.noisier.tolist() == [True, True, False]
    # The seeds' means have a variance of 1: three times that, less 1, over 3.
    assert spread.seeds == pytest.approx(2 / 3)
    variance, freedom = spread.difference([1, 2], 0)
    # The baseline's own 2 has 2 degrees of freedom, the arms' 2 and 1 have 4.
    assert variance.tolist() == pytest.approx([4 / 3, 1])
    assert freedom.tolist() == pytest.approx([16 / (4 / 4 + 4 / 2), 9 / (1 / 4 + 4 / 2)])
    # Against the third arm everything is pooled.
    assert spread.difference(0, 2)[1].tolist() == [4]


def test_the_mean_squares_are_those_of_an_analysis_of_variance():
    runs = np.random.default_rng(1).normal(size=(6, 5))
    table = pd.DataFrame(
        {"score": runs.ravel(), "arm": np.repeat(range(6), 5), "seed": np.tile(range(5), 6)}
    )
    oracle = sm.stats.anova_lm(ols("score ~ C(arm) + C(seed)", table).fit())
    spread = run_spread(runs)
    assert spread.pooled == pytest.approx(oracle.loc["Residual", "mean_sq"])
    assert spread.freedom == oracle.loc["Residual", "df"]
    shared = (oracle.loc["C(seed)", "mean_sq"] - spread.pooled) / 6
    assert spread.seeds == pytest.approx(max(shared, 0))


def test_two_arms_are_compared_by_the_paired_t_test():
    runs = np.random.default_rng(2).normal(size=(2, 7))
    variance, freedom = run_spread(runs).difference(1, 0)
    oracle = stats.ttest_rel(runs[1], runs[0])
    value = (runs[1] - runs[0]).mean() / np.sqrt(variance.item())
    assert value == pytest.approx(oracle.statistic) and freedom.item() == oracle.df


def test_an_arm_alone_is_compared_with_a_fixed_policy_by_the_t_test():
    runs = np.random.default_rng(3).normal(size=(1, 6))
    variance, freedom = run_spread(runs).level(0)
    oracle = stats.ttest_1samp(runs[0], 0)
    assert runs.mean() / np.sqrt(variance.item()) == pytest.approx(oracle.statistic)
    assert freedom.item() == oracle.df


def test_the_variances_are_unbiased_whatever_the_arms_share():
    rng = np.random.default_rng(4)
    deviations, repeats = np.array([1.0, 1.0, 2.0, 3.0]), 20_000
    runs = deviations[:, None] * rng.normal(size=(repeats, 4, 5)) + 2 * rng.normal(
        size=(repeats, 1, 5)
    )
    twin = rng.normal(size=(repeats, 5)) + 2 * rng.normal(size=(repeats, 5))
    spread = run_spread(runs, twin)
    assert spread.pooled.mean() == pytest.approx((deviations**2).mean(), rel=0.02)
    # Own variances are never below the pooled one, so the wide arm's is a little above 9.
    assert 9 <= spread.arms[:, 3].mean() < 9.3
    # The mean difference from both references varies as the formula without the floor has it.
    both = (runs[:, 0] + twin) / 2
    variance = (runs[:, 3] - both).mean(axis=1).var()
    assert variance == pytest.approx((9 + 0.5 + 4 / 2) / 5, rel=0.04)
    assert spread.from_both(3, 0)[0].mean() >= variance


def test_equal_runs_have_no_spread():
    variance, freedom = run_spread(np.full((3, 5), 0.5)).difference([1, 2], 0)
    assert variance.tolist() == [0, 0] and freedom.tolist() == [8, 8]


CELLS = [
    Cell(5, 7),
    Cell(5, 26, twin=True, spreads="few_wide"),
    Cell(5, 5, spreads="wide_reference"),
    Cell(5, 7, collapse=True, games="bernoulli", endpoint="last_round"),
    Cell(5, 7, baseline="fixed", common=0.5),
]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_studies_of_equal_arms_call_an_arm_in_at_most_5_percent(cell):
    """The lower end of a 99.9 % interval of the share would lie above 5 % by chance only."""
    rows = {row["analysis"]: row for row in measure(cell, 2000, 7)}
    taken = rows["taken"]
    assert wilson_interval(taken["either"], taken["repeats"], 0.001)[0] < 0.05
    assert taken["coverage"] > 0.93
    if cell == CELLS[0]:
        # What was wrong with the earlier analysis, and what the new one finds instead.
        today = rows["today"]
        assert wilson_interval(today["either"], today["repeats"], 0.001)[0] > 0.05
        assert taken["power"] > today["power"] + 0.1


def test_the_table_has_the_worst_of_cells_that_differ_in_their_world_only():
    cells = [Cell(5, 3, common=common) for common in (0.0, 0.5)]
    rows = pd.DataFrame(row for cell in cells for row in measure(cell, 400, 1))
    rows = rows[rows["analysis"] == "today"].assign(either=[40, 60], coverage=[0.9, 0.95])
    (row,) = summary(rows.assign(power=[0.4, 0.6])).to_dict("records")
    assert (row["either"], row["coverage"], row["cells"]) == (0.15, 0.9, 2)
    assert row["power"] == pytest.approx(0.5)
    assert (row["lower"], row["upper"]) == pytest.approx(wilson_interval(60, 400), abs=1e-4)
    assert {name: row[name] for name in CELL} == {name: getattr(cells[0], name) for name in CELL}
