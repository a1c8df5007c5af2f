"""Gates: what controls must show."""

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from scipy import stats

from hgrpo.evaluation.gates import Gate, judge


@pytest.mark.parametrize(
    ("expect", "points", "difference", "lower", "upper", "holds"),
    [
        ("above", None, 0.10, 0.01, 0.19, True),
        ("above", None, 0.10, -0.01, 0.21, False),
        ("above", 10, 0.12, 0.01, 0.23, True),
        ("above", 10, 0.08, 0.05, 0.11, False),
        ("below", None, -0.10, -0.19, -0.01, True),
        ("below", None, -0.10, -0.21, 0.01, False),
        ("not_above", None, 0.03, -0.01, 0.07, True),
        ("not_above", None, -0.30, -0.40, -0.20, True),
        ("not_above", None, 0.03, 0.01, 0.05, False),
        ("no_difference", None, 0.03, -0.01, 0.07, True),
        ("no_difference", None, -0.03, -0.05, -0.01, False),
        ("equivalent", 5, 0.01, -0.04, 0.049, True),
        ("equivalent", 5, 0.01, -0.04, 0.051, False),
        ("equivalent", 5, 0.0, -0.06, 0.04, False),
    ],
)
def test_a_gate_reads_the_difference_and_its_interval(
    expect, points, difference, lower, upper, holds
):
    gate = Gate(arm="Oracle", expect=expect, points=points)
    assert gate.holds(difference, lower, upper) == holds


def test_a_gate_is_open_without_five_seeds_or_without_its_arm():
    gates = [Gate(arm=arm, expect="above") for arm in ("Oracle", "Vine", "Absent")]
    table = pd.DataFrame(
        {
            "method": ["Oracle", "Vine"],
            "difference": [0.2, 0.2],
            "lower": [0.1, 0.1],
            "upper": [0.3, 0.3],
            "n_seeds": [5, 4],
            "standard_error": [0.05, 0.05],
            "degrees_of_freedom": [8, 6],
        }
    )
    judged = judge(gates, table, 0.95)
    assert judged["result"].tolist() == ["passed", "open", "open"]
    assert judged["n_seeds"].tolist() == [5, 4, 0]
    assert np.isnan(judged["difference"].iloc[2])
    assert judge([], table, 0.95).empty
    assert judge(gates, pd.DataFrame(), 0.95)["result"].tolist() == ["open"] * 3


def test_the_power_of_a_gate_is_that_of_its_t_test():
    # An error of 3 points with 28 degrees of freedom, and a true difference of 10 points.
    limit = stats.t.isf(0.025, 28)
    above = stats.nct.sf(limit, 28, 10 / 3)
    powers = {
        expect: Gate(arm="A", expect=expect).power(0.03, 28, 0.95)
        for expect in ("above", "below", "not_above", "no_difference")
    }
    assert powers["above"] == pytest.approx(above, abs=1e-3)
    assert powers["below"] == powers["above"]
    assert powers["not_above"] == pytest.approx(above, abs=1e-3)
    both = above + stats.nct.cdf(-limit, 28, 10 / 3)
    assert powers["no_difference"] == pytest.approx(both, abs=1e-3)
    # At least 10 points are found in half of the repeats of a precise study.
    assert Gate(arm="A", expect="above", points=10).power(0.001, 28, 0.95) == pytest.approx(0.5)
    assert np.isnan(Gate(arm="A", expect="above").power(np.nan, 28, 0.95))


def test_the_power_of_equivalence_against_simulation():
    rng, repeats, error, freedom = np.random.default_rng(1), 100_000, 0.02, 10
    errors = error * np.sqrt(rng.chisquare(freedom, repeats) / freedom)
    half = stats.t.ppf(0.975, freedom) * errors
    passed = np.abs(error * rng.standard_normal(repeats)) + half <= 0.05
    gate = Gate(arm="A", expect="equivalent", points=5)
    assert gate.power(error, freedom, 0.95) == pytest.approx(passed.mean(), abs=0.006)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"expect": "equivalent"}, "`expect: equivalent` requires an equivalence margin"),
        ({"expect": "below", "points": 5}, "points: 5.0 has an effect only with"),
    ],
)
def test_a_gate_that_says_too_little_or_too_much_is_refused(section, message):
    with pytest.raises(ValidationError, match=message):
        Gate(arm="Oracle", **section)
