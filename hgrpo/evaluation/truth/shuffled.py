"""Null model: true advantages shuffled over the turns of each trajectory.

Shuffled credit has the correct sum per trajectory but no information on single turns. Only the
estimate from the first half of the continuations is shuffled. It is compared with the estimate from
the second half, whose noise is independent. Means over all permutations of the turns have a closed
form. After subtracting each trajectory's mean, the correlation with the truth is exactly 0.
"""

import numpy as np

from hgrpo.evaluation.truth.resampling import ratio, sums_by_group


def shuffled_pearson(
    halves: tuple[np.ndarray, np.ndarray],
    lengths: np.ndarray,
    owner: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """Correlation of the shuffled truth with the truth, corrected for noise in both, float64 [R].

        r = cov(shuffled first half, second half) / cov(first half, second half)

    Args:
        halves: estimates of the truth from each half of the continuations, float64 [N] each.
        lengths: int [trajectories], number of turns of each trajectory.
        owner: int [N], each turn's group.
        weights: float64 [R, groups] from `resamples`.
    """
    first, second = halves
    columns = np.array([np.ones(len(first)), first, second, first * second])
    columns = np.vstack([columns, trajectory_means(first, lengths) * second])
    n, a, b, ab, dealt = (weights @ sums_by_group(columns, owner, weights.shape[1])).T
    middle = a * b / np.where(n > 0, n, np.nan)
    return ratio(dealt - middle, ab - middle)


def shuffled_signs(
    truth: np.ndarray,
    clear: np.ndarray,
    lengths: np.ndarray,
    owner: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """Sign accuracy of the shuffled truth on the `clear` turns, float64 [R]."""
    signs = np.sign(truth)
    # The score is linear in the shuffled sign, so use the mean sign instead of permutations.
    hits = (1 + trajectory_means(signs, lengths) * signs) / 2
    columns = np.array([clear * hits, clear], dtype=np.float64)
    right, turns = (weights @ sums_by_group(columns, owner, weights.shape[1])).T
    return ratio(right, turns)


def trajectory_means(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Mean of `values` [N] over each trajectory, repeated for its turns, float64 [N]."""
    trajectory = np.repeat(np.arange(len(lengths)), lengths)
    return (np.bincount(trajectory, values) / np.bincount(trajectory))[trajectory]


def shuffled_spread(
    halves: tuple[np.ndarray, np.ndarray], sketches: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Variance of a trajectory's gradient due to shuffling, float64 [trajectories].

    For a trajectory of T turns with gradients s_t, the variance is

        c (T sum |s_t|^2 - |sum s_t|^2) / (T - 1),

    where c is the covariance of the two halves over the turns. The variance is 0 if T is 1. The
    formula excludes noise, because the noise of the two halves is independent.

    Args:
        sketches: float64 [N, size], s_t.
    """
    first, second = halves
    starts = np.cumsum(lengths) - lengths
    trajectory = np.repeat(np.arange(len(lengths)), lengths)
    away = first - trajectory_means(first, lengths)
    covariance = np.bincount(trajectory, away * second) / lengths
    squares = np.bincount(trajectory, (sketches**2).sum(axis=1))
    whole = (np.add.reduceat(sketches, starts) ** 2).sum(axis=1)
    return covariance * (lengths * squares - whole) / np.maximum(lengths - 1, 1)
