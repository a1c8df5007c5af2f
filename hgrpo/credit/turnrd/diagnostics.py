"""Diagnostics of alpha, the weights that TurnRD gives to the turns of a trajectory."""

from collections.abc import Sequence

import numpy as np


def alpha_diagnostics(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Average diagnostics over trajectories, each given as a pair (alpha [T], progress [T]).

    Returns:
        - alpha_mean, alpha_var, alpha_max: mean, variance and maximum of alpha
        - alpha_entropy: entropy of alpha in nats
        - alpha_entropy_ratio: entropy divided by the entropy of equal weights, over trajectories
          with at least two turns
        - alpha_progress_corr: Pearson correlation of alpha and progress, over trajectories in which
          neither is constant
        An entry is omitted if there are no such trajectories.
    """
    alphas = [alpha for alpha, _ in pairs]
    parts = {
        "alpha_mean": [alpha.mean() for alpha in alphas],
        "alpha_var": [alpha.var() for alpha in alphas],
        "alpha_max": [alpha.max() for alpha in alphas],
        "alpha_entropy": [entropy(alpha) for alpha in alphas],
        "alpha_entropy_ratio": [
            entropy(alpha) / np.log(len(alpha)) for alpha in alphas if len(alpha) > 1
        ],
    }
    result = {name: float(np.mean(numbers)) for name, numbers in parts.items() if numbers}
    correlation = mean_correlation(pairs)
    if correlation is not None:
        result["alpha_progress_corr"] = correlation
    return result


def entropy(alpha: np.ndarray) -> float:
    """Entropy of a distribution [T] in nats."""
    positive = alpha[alpha > 0]
    return float(-(positive * np.log(positive)).sum())


def mean_correlation(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """Mean Pearson correlation over pairs of non-constant arrays; None if there are none."""
    correlations = [
        np.corrcoef(first, second)[0, 1]
        for first, second in pairs
        if len(first) > 1 and np.ptp(first) > 1e-12 and np.ptp(second) > 1e-12
    ]
    return float(np.mean(correlations)) if correlations else None


def pooled_correlation(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """Pearson correlation over the turns of all pairs, after subtracting each array's mean.

    Unlike `mean_correlation`, it is informative even if trajectories have two turns, where the
    correlation of a single pair is always 1 or -1. The result is None if there are fewer than two
    pairs, if all first arrays are constant, or if all second arrays are constant.
    """
    if len(pairs) < 2:
        return None
    first, second = (
        np.concatenate([side - side.mean() for side in sides]) for sides in zip(*pairs, strict=True)
    )
    # Both sides are centred, so their means are 0.
    if np.ptp(first) <= 1e-12 or np.ptp(second) <= 1e-12:
        return None
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))
