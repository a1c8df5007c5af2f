"""Correlation of a credit with the true advantages, although only noisy estimates are known.

Noise in the truth weakens a correlation with it. Two estimates with independent noise, one from
each half of the continuations, show how much: their covariance is the variance of the truth alone.
This is Spearman's correction for attenuation (Spearman 1904, "The Proof and Measurement of
Association between Two Things", https://doi.org/10.2307/1412159). By chance, a corrected
correlation may exceed 1. The credit's own noise is part of the credit and is not corrected.
"""

import numpy as np

from hgrpo.evaluation.truth.resampling import ratio, sums_by_group


def pearson(
    credit: np.ndarray,
    truth: np.ndarray,
    halves: tuple[np.ndarray, np.ndarray],
    owner: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """Corrected correlation on each resample, float64 [R].

        r = cov(credit, truth) / sqrt(var(credit) cov(first half, second half))

    NaN where the credit does not vary, or where the halves do not show that the truth varies.

    Args:
        credit, truth: float64 [turns].
        halves: the truth from each half of the continuations, float64 [turns] each.
        owner: int [turns], each turn's group.
        weights: float64 [R, groups] from `resamples`.
    """
    first, second = halves
    one = np.ones(len(credit))
    columns = [one, credit, truth, first, second]
    columns += [credit * truth, credit**2, first * second]
    sums = weights @ sums_by_group(np.array(columns), owner, weights.shape[1])
    n, c, t, a, b, ct, cc, ab = np.where(sums[:, :1] > 0, sums, np.nan).T
    shared = ct / n - c * t / n**2
    spread, true = cc / n - (c / n) ** 2, ab / n - a * b / n**2
    return ratio(shared, np.sqrt(np.maximum(_varies(spread, cc / n) * true, 0)))


def _varies(variance: np.ndarray, square: np.ndarray) -> np.ndarray:
    """The variance, and 0 where it is no more than the rounding of the mean square."""
    return np.where(variance > 1e-12 * square, variance, 0.0)
