"""Slopes of squared norms over the deviation of returns, and which part dominates, by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from hgrpo.evaluation.gradients.slopes import bucket_means, dominance, slopes, weighted_norms


def table(task, regularisers=(3.5, 3.5, 3.5), deviations=(0.0, 1.0, 2.0)):
    """Three buckets, and a list of the task's norms for each seed."""
    rows = []
    for seed, norms_of_seed in enumerate(task):
        for name, norms, weight in (("task", norms_of_seed, 1), ("regularisers", regularisers, 1)):
            rows += [
                {
                    "method": "PPO",
                    "seed": seed,
                    "round": 1,
                    "pass": "prefilter",
                    "bucket": f"bucket_{index}",
                    "component": name,
                    "deviation": deviation,
                    "groups": 21,
                    "corrected_lower": norm / 2,
                    "corrected_upper": 2 * norm,
                    # Noise is a third of the signal.
                    "norm": norm * (4 / 3) ** 0.5,
                    "signal": norm**2,
                    "coefficient": weight,
                }
                for index, (norm, deviation) in enumerate(zip(norms, deviations, strict=True))
            ]
    rows.append(rows[0] | {"bucket": "all"})
    rows.append(rows[0] | {"component": "kl", "norm": 10.0, "signal": 64.0, "coefficient": 0.25})
    return weighted_norms(pd.DataFrame(rows))


def test_slopes_by_hand():
    # Squares 0, 1, 2 and 0, 3, 6 have slopes of 1 and 3: mean 2, standard error 1, and
    # t(0.975, 1) is 12.7062.
    one, two = [0.0, 1.0, 2**0.5], [0.0, 3**0.5, 6**0.5]
    rows = slopes(table([one, two])).set_index("component")
    task = rows.loc["task"]
    assert task["slope"] == pytest.approx(2) and task["seeds"] == 2
    assert task["mean"] == pytest.approx(2)
    assert task["slope_lower"] == pytest.approx(2 - 12.7062, abs=1e-3)
    assert task["slope_upper"] == pytest.approx(2 + 12.7062, abs=1e-3)
    assert task["p"] == pytest.approx(2 * stats.t.sf(2, 1)) == task["p_holm"]
    assert task["verdict"] == "inconclusive"
    assert rows.loc["regularisers", "slope"] == pytest.approx(0, abs=1e-12)
    norms = table([[0.0, 1.0, 2.0]])
    # Norm 10, square 64 without noise, and a coefficient of a quarter.
    kl = norms[norms["component"] == "kl"].iloc[0]
    assert kl[["norm", "square", "noise"]].tolist() == pytest.approx([2.5, 4.0, 2.25])
    task = norms[(norms["component"] == "regularisers")].iloc[0]
    assert task[["groups", "lower", "upper"]].tolist() == [21, 1.75, 7.0]
    assert "all" not in set(norms["bucket"])


def test_a_slope_that_every_seed_shows_rises_after_holms_correction():
    norms = table([[0.0, 1.0, 2**0.5], [0.0, 1.001, 2**0.5]])
    twice = pd.concat([norms, norms.assign(round=2, square=-norms["square"])])
    rows = slopes(twice)
    task = rows[rows["component"] == "task"].set_index("round")
    assert task["verdict"].to_dict() == {1: "rises", 2: "falls"}
    assert task["p_holm"].tolist() == pytest.approx((2 * task["p"]).tolist())


def test_a_component_without_gradient_has_no_p_value():
    norms = table([[1.0, 2.0, 3.0], [1.0, 2.5, 3.0]])
    still = norms[norms["component"] == "regularisers"].assign(round=2, norm=0.0, square=0.0)
    rows = slopes(pd.concat([norms, still]))
    rows = rows[rows["component"] == "regularisers"].set_index("round")
    assert rows.loc[2, "verdict"] == "no gradient" and np.isnan(rows.loc[2, "p_holm"])
    assert rows.loc[1, "p_holm"] == rows.loc[1, "p"]


def test_noise_that_grows_with_the_deviation_is_no_slope():
    """Without any gradient, roots of what noise leaves, set to 0 below it, would seem to rise."""
    stream, rising = np.random.default_rng(5), 0
    noise = 0.06 * np.arange(6) / 5
    for _ in range(100):
        # Of 21 groups in a bucket, the square of their mean less what noise adds to it.
        squares = noise * stream.normal(0, np.sqrt(2 / 21), size=(3, 6))
        rows = [
            {"method": "PPO", "seed": seed, "round": 0, "pass": "prefilter", "component": "task"}
            | {"bucket": f"bucket_{place}", "deviation": float(place)}
            | {"norm": 0.3, "square": square}
            for seed, values in enumerate(squares)
            for place, square in enumerate(values)
        ]
        rising += slopes(pd.DataFrame(rows))["verdict"].item() == "rises"
    # One in forty would be the rate of a two-sided test at 5 %.
    assert rising / 100 < 0.05


def test_dominance_by_hand():
    rows = dominance(table([[0.1, 1.0, 20.0], [0.2, 3.0, 20.1]])).set_index("place")
    low, high = rows.loc["lowest"], rows.loc["highest"]
    # The squares 3.5^2 - 0.1^2 and 3.5^2 - 0.2^2 are 12.24 and 12.21: t = 12.225 / 0.015.
    assert low["difference"] == pytest.approx(12.225)
    assert low["p"] == pytest.approx(2 * stats.t.sf(12.225 / 0.015, 1))
    assert high["difference"] == pytest.approx(3.5**2 - (20.0**2 + 20.1**2) / 2)
    assert low["p_holm"] == pytest.approx(2 * low["p"])
    assert high["p_holm"] == pytest.approx(max(high["p"], low["p_holm"]))
    assert low["verdict"] == "the regularisers dominate" and high["verdict"] == "the task dominates"


def test_a_task_that_hides_in_noise_is_not_dominated():
    """Where noise is a hundred times the task's norm, few of many studies find a winner."""
    stream, verdicts = np.random.default_rng(3), []
    for _ in range(100):
        # The task's norm is 0.003, eight times the regularisers'; the noise's square is 0.09.
        squares = 0.003**2 + stream.normal(0, 0.09 / np.sqrt(21), size=3)
        rows = [
            {"method": "PPO", "seed": seed, "round": 1, "pass": "prefilter", "bucket": bucket}
            | {"component": part, "deviation": place, "norm": 0.3, "square": square}
            for seed, values in enumerate(squares)
            for place, bucket in enumerate(("bucket_1", "bucket_2"))
            for part, square in (("task", values), ("regularisers", 0.0004**2))
        ]
        verdicts += dominance(pd.DataFrame(rows))["verdict"].tolist()
    assert np.mean([verdict == "the regularisers dominate" for verdict in verdicts]) < 0.04


def test_a_task_whose_gradient_is_0_by_its_formula_is_said_and_not_tested():
    """Where all returns of a group are equal, so it is for advantages from groups."""
    rows = dominance(table([[0.0, 1.0, 20.0], [0.0, 3.0, 20.1]])).set_index("place")
    low, high = rows.loc["lowest"], rows.loc["highest"]
    assert low["verdict"] == "the task has no gradient" and low["difference"] == 3.5**2
    assert np.isnan(low["p"]) and np.isnan(low["p_holm"])
    assert high["p_holm"] == high["p"]


def test_one_seed_has_no_interval_and_no_verdict():
    norms = table([[0.5, 1.0, 2.0]])
    assert np.isnan(slopes(norms)["slope_lower"]).all()
    assert set(slopes(norms)["verdict"]) == {"inconclusive"}
    assert set(dominance(norms)["verdict"]) == {"inconclusive"}


def test_buckets_of_one_deviation_keep_their_order_and_have_no_slope():
    norms = table([[1.0, 2.0, 9.0], [1.0, 2.0, 9.0]], deviations=(0.5, 0.5, 0.5))
    rows = slopes(norms)
    assert rows[["slope", "slope_lower", "p", "p_holm"]].isna().all(axis=None)
    assert set(rows["verdict"]) == {"inconclusive"}
    place = dominance(norms).set_index("place")["difference"]
    assert place.to_dict() == pytest.approx({"lowest": 3.5**2 - 1.0, "highest": 3.5**2 - 81.0})


def test_means_over_seeds_have_intervals_and_one_seed_has_its_own():
    rows = [
        {
            "method": "PPO",
            "round": 0,
            "pass": "prefilter",
            "bucket": "bucket_1",
            "component": component,
            "seed": seed,
            "deviation": 0.5,
            "groups": 4,
            "tokens": 100 + seed,
            "norm": 1.0 + seed,
            "corrected": 2.0 * seed,
            "signal": -1.0 if seed else 9.0,
            "cosine_to_all": 0.5,
            "corrected_lower": 0.1,
            "corrected_upper": 0.9,
            "signal_to_noise": np.nan if seed else 4.0,
            "cosine_to_task": 0.3,
            "cosine_to_regularisers": 0.2 + seed,
        }
        for seed in (0, 2)
        for component in ("task", "kl", "regularisers")
    ]
    means = bucket_means(pd.DataFrame(rows)).set_index("component")
    task = means.loc["task"]
    # Norms 1 and 3: mean 2, standard error 1.
    assert task["norm"] == 2 and task["norm_lower"] == pytest.approx(2 - 12.7062, abs=1e-3)
    assert task["tokens"] == 101 and task["groups"] == 4
    # Signals 9 and -1: the root of their mean, and of the ends 4 - 5 t and 4 + 5 t.
    assert task["corrected"] == 2
    assert task["corrected_lower"] == pytest.approx(-((5 * 12.7062 - 4) ** 0.5), abs=1e-3)
    assert task["signal_to_noise"] == 4 and np.isnan(task["signal_to_noise_lower"])
    assert task["cosine"] == pytest.approx(1.2) and means.loc["regularisers", "cosine"] == 0.3
    assert np.isnan(means.loc["kl", "cosine"])
    one = bucket_means(pd.DataFrame(rows[:3])).set_index("component").loc["task"]
    assert (one["corrected_lower"], one["corrected_upper"]) == (0.1, 0.9)
    assert np.isnan(one["norm_lower"])
