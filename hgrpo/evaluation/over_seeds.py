"""Intervals and tests for one value per seed. The sampling of tasks is not taken into account.

To compare two arms, pass their differences, paired by seed.
"""

import numpy as np
from scipy import stats

from hgrpo.evaluation.statistics import LEVEL, Estimate


def seed_interval(values: np.ndarray, level: float = LEVEL) -> Estimate:
    """Mean of one value per seed, or of paired differences [seeds], and its t interval.

    With one seed the interval is from -inf to inf, because the variance is unknown.

    Raises:
        ValueError: `values` is empty or has more than one dimension.
    """
    values = _vector(values)
    seeds, mean = len(values), float(values.mean())
    if seeds == 1:
        return Estimate(mean, -np.inf, np.inf, np.inf, 1.0, 1, 1)
    error = float(values.std(ddof=1) / np.sqrt(seeds))
    half = error * stats.t.ppf((1 + level) / 2, seeds - 1)
    return Estimate(mean, mean - half, mean + half, error, float(seeds - 1), seeds, 1)


def seed_bootstrap(
    values: np.ndarray, rng: np.random.Generator, replicates: int, level: float = LEVEL
) -> tuple[float, float]:
    """Bias-corrected and accelerated bootstrap interval of the mean of one value per seed.

    The interval is NaN for at most two values, or if all values are equal. Source: Efron 1987,
    "Better Bootstrap Confidence Intervals" (https://doi.org/10.1080/01621459.1987.10478410).

    Raises:
        ValueError: `values` is empty or has more than one dimension.
    """
    values = _vector(values)
    if len(values) < 3 or np.ptp(values) == 0:
        return np.nan, np.nan
    seeds, mean = len(values), values.mean()
    weights = rng.multinomial(seeds, np.full(seeds, 1 / seeds), replicates) / seeds
    means = weights @ values
    # With few seeds, many of `means` equal `mean`. Half of them count as below `mean`.
    below = ((means < mean).mean() + (means <= mean).mean()) / 2
    bias = stats.norm.ppf(below)
    apart = values - mean
    acceleration = (apart**3).sum() / (6 * (apart**2).sum() ** 1.5)
    shifted = bias + stats.norm.ppf([(1 - level) / 2, (1 + level) / 2])
    shares = stats.norm.cdf(bias + shifted / (1 - acceleration * shifted))
    lower, upper = np.quantile(means, shares)
    return float(lower), float(upper)


def equivalence(values: np.ndarray, margin: float) -> float:
    """p-value of two one-sided t tests (TOST) for a mean of `values` [seeds] within +-margin.

    The result is the larger p-value of the two tests, or 1 with one seed. A small p-value is
    evidence that the true mean is less than `margin` from 0. Source: Schuirmann 1987, "A Comparison
    of the Two One-Sided Tests Procedure and the Power Approach"
    (https://doi.org/10.1007/BF01068419).

    Raises:
        ValueError: `values` is not a vector with at least one seed, or the margin is not positive.
    """
    if not margin > 0:
        raise ValueError(f"expected a positive margin, got {margin}")
    estimate = seed_interval(values)
    if estimate.n_seeds == 1:
        return 1.0
    room = margin - abs(estimate.mean)
    if estimate.standard_error == 0:
        return float(room <= 0)
    return float(stats.t.sf(room / estimate.standard_error, estimate.degrees_of_freedom))


def _vector(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"expected a vector [seeds >= 1], got shape {values.shape}")
    return values
