"""Intervals and tests over seeds against hand computation and all resamples."""

import numpy as np
import pytest

from hgrpo.evaluation import over_seeds


def test_an_interval_over_seeds_alone_by_hand():
    # Mean 3, deviations -2, 0, 2: variance 4, standard error 2 / sqrt(3), 2 degrees of freedom,
    # whose t quantile of 97.5 % is 4.302653.
    estimate = over_seeds.seed_interval([1.0, 3.0, 5.0])
    assert estimate.standard_error == pytest.approx(2 / 3**0.5)
    assert [estimate.lower, estimate.upper] == pytest.approx(
        [3 - 4.302653 * 2 / 3**0.5, 3 + 4.302653 * 2 / 3**0.5]
    )
    # t = 3 / (2 / sqrt(3)) = 2.598; with 2 degrees of freedom P(|T| > t) = 1 - t / sqrt(2 + t^2).
    t = 3 * 3**0.5 / 2
    assert estimate.p_value == pytest.approx(1 - t / (2 + t * t) ** 0.5)
    alone = over_seeds.seed_interval([0.4])
    assert (alone.mean, alone.upper, alone.p_value) == (0.4, np.inf, 1.0)


def test_equivalence_is_the_greater_of_two_one_sided_tests():
    # Standard error 2 / sqrt(3) as above, mean 1. The nearer bound of margin 4 is 3 away:
    # t = 3 sqrt(3) / 2, and with 2 degrees of freedom P(T > t) = (1 - t / sqrt(2 + t^2)) / 2.
    t = 3 * 3**0.5 / 2
    expected = (1 - t / (2 + t * t) ** 0.5) / 2
    assert over_seeds.equivalence([-1.0, 1.0, 3.0], 4.0) == pytest.approx(expected)
    assert over_seeds.equivalence([1.0, -1.0, -3.0], 4.0) == pytest.approx(expected)
    # A mean at the bound is no evidence, one beyond it speaks against.
    assert over_seeds.equivalence([-1.0, 1.0, 3.0], 1.0) == pytest.approx(0.5)
    assert over_seeds.equivalence([1.0, 3.0, 5.0], 1.0) > 0.5
    assert over_seeds.equivalence([0.0, 0.0], 0.1) == 0.0
    assert over_seeds.equivalence([0.2, 0.2], 0.1) == 1.0
    assert over_seeds.equivalence([0.0], 0.1) == 1.0
    with pytest.raises(ValueError, match="margin"):
        over_seeds.equivalence([0.0, 1.0], 0.0)


def test_the_bootstrap_over_seeds_against_all_resamples():
    # The values are symmetric, so there is neither bias nor acceleration, and the ends are
    # quantiles of the means of all 27 resamples.
    values = np.array([-1.0, 0.0, 1.0])
    every = np.array([[a, b, c] for a in values for b in values for c in values]).mean(1)
    lower, upper = over_seeds.seed_bootstrap(values, np.random.default_rng(0), 200_000, 0.8)
    assert [lower, upper] == pytest.approx(np.quantile(every, [0.1, 0.9], method="inverted_cdf"))
    # A tail to the right moves both ends to the right: quantiles of the means would be lower.
    skewed = np.r_[np.zeros(9), 10.0]
    lower, upper = over_seeds.seed_bootstrap(skewed, np.random.default_rng(0), 20_000)
    plain = np.random.default_rng(1).choice(skewed, (20_000, 10)).mean(1)
    assert upper > np.quantile(plain, 0.975) and lower >= np.quantile(plain, 0.025)
    assert np.isnan(over_seeds.seed_bootstrap([1.0, 2.0], np.random.default_rng(0), 10)).all()
    assert np.isnan(over_seeds.seed_bootstrap([1.0] * 4, np.random.default_rng(0), 10)).all()
