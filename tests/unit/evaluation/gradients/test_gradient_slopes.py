"""Slopes of norms over the deviation of returns, by hand."""

import numpy as np
import pandas as pd
import pytest

from hgrpo.evaluation.gradients.slopes import dominance, slopes, weighted_norms


def table(task, kl=(4.0, 4.0, 4.0), entropy=(6.0, 6.0, 6.0)):
    """Three buckets of deviations 0, 1 and 2; a list of the task's norms for each seed."""
    rows = []
    for seed, own in enumerate(task):
        for name, norms, weight in (("task", own, 1), ("kl", kl, 0.5), ("entropy", entropy, 0.25)):
            rows += [
                {
                    "method": "PPO",
                    "seed": seed,
                    "round": 1,
                    "pass": "prefilter",
                    "bucket": f"bucket_{index}",
                    "component": name,
                    "deviation": float(index),
                    "corrected": norm,
                    "coefficient": weight,
                }
                for index, norm in enumerate(norms)
            ]
    rows.append(rows[0] | {"bucket": "all", "corrected": 99.0})
    return weighted_norms(pd.DataFrame(rows))


def test_slopes_by_hand():
    # Slopes of 1 and 3: mean 2, standard error 1, and t(0.975, 1) is 12.7062.
    found = slopes(table([[0.0, 1.0, 2.0], [0.0, 3.0, 6.0]])).set_index("component")
    task = found.loc["task"]
    assert task["slope"] == pytest.approx(2) and task["seeds"] == 2
    assert task["slope_lower"] == pytest.approx(2 - 12.7062, abs=1e-3)
    assert task["slope_upper"] == pytest.approx(2 + 12.7062, abs=1e-3)
    # Relative to mean norms of 1 and 3 both slopes are 1.
    assert task["relative"] == pytest.approx(1) == task["relative_lower"]
    assert found.loc["regularisers", "slope"] == pytest.approx(0, abs=1e-12)
    # 0.5 * 4 + 0.25 * 6
    norms = table([[0.0, 1.0, 2.0]])
    assert set(norms[norms["component"] == "regularisers"]["norm"]) == {3.5}


def test_dominance_by_hand():
    found = dominance(table([[0.1, 1.0, 20.0], [0.2, 3.0, 20.1]])).set_index("place")
    assert found.loc["lowest", "difference"] == pytest.approx(3.5 - 0.15)
    assert found.loc["lowest", "verdict"] == "regularisers dominate"
    assert found.loc["highest", "difference"] == pytest.approx(3.5 - 20.05)
    assert found.loc["highest", "verdict"] == "the task dominates"


def test_one_seed_has_no_interval_and_no_verdict():
    norms = table([[0.0, 1.0, 2.0]])
    assert np.isnan(slopes(norms)["slope_lower"]).all()
    assert set(dominance(norms)["verdict"]) == {"inconclusive"}


def test_buckets_of_one_deviation_have_no_slope():
    norms = table([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]).assign(deviation=0.5)
    found = slopes(norms.drop_duplicates(["seed", "component"]))
    assert found["slope"].isna().all() and found["slope_lower"].isna().all()
