"""Diagnostics of alpha, TurnRD's weights of the turns of a trajectory."""

from collections.abc import Sequence

import numpy as np


def alpha_diagnostics(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Mean diagnostics over trajectories, from pairs (alpha [T], progress [T]).

    Returns:
        - alpha_mean, alpha_var, alpha_max: mean, variance and maximum within a trajectory
        - alpha_entropy: entropy in nats
        - alpha_entropy_ratio: entropy divided by the entropy of equal weights, over trajectories
          with two or more turns; absent if there is no such trajectory
        - alpha_progress_corr: mean Pearson correlation of alpha and progress, over trajectories
          in which both vary; absent if there is no such trajectory
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
    """Mean Pearson correlation over pairs in which both sides vary; None without such pairs."""
    correlations = [
        np.corrcoef(first, second)[0, 1]
        for first, second in pairs
        if len(first) > 1 and np.ptp(first) > 1e-12 and np.ptp(second) > 1e-12
    ]
    return float(np.mean(correlations)) if correlations else None


def pooled_correlation(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """Pearson correlation over the turns of all pairs, each side centred within its pair.

    Unlike `mean_correlation`, it is informative for pairs of only two turns, within which the
    correlation is always 1 or -1. None for fewer than two pairs, or if a side is constant in every
    pair.
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
