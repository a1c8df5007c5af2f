"""Factors of the advantages of what is kept."""

import numpy as np

from hgrpo.learning.filters.groups import is_zero
from hgrpo.learning.filters.settings import LossScaling


def soft_weights(scores: np.ndarray, zero_tolerance: float) -> np.ndarray:
    """score / max score, float64 [G], of scores from 0. A score that counts as 0 gets 0."""
    scores = np.asarray(scores, dtype=np.float64)
    zero = is_zero(scores, zero_tolerance)
    return np.zeros_like(scores) if zero.all() else np.where(zero, 0.0, scores / scores.max())


def loss_factor(scaling: LossScaling, kept: int, total: int) -> float:
    """The factor of the kept advantages, if `kept` of `total` trajectories are kept.

    With groups of one size kept as a whole, the kept share is RAGEN's share of kept groups.
    """
    if scaling == "none" or total == 0:
        return 1.0
    share = kept / total
    return share if scaling == "linear" else share**0.5
