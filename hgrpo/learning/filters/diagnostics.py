"""What the log says of a filtered batch."""

from collections.abc import Sequence

import numpy as np

from hgrpo.learning.filters.groups import is_zero, remaining_groups, softmax
from hgrpo.learning.filters.settings import FilterConfig
from hgrpo.learning.filters.trajectories import kept_groups


def effective_number(weights: np.ndarray) -> float | None:
    """(sum w)^2 / sum w^2 of weights [n]: Kish's effective number, from 1 to n.

    None if no weight is above 0, or one is below 0.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if (weights < 0).any() or not weights.any():
        return None
    shares = weights / weights.max()
    return float(shares.sum() ** 2 / np.square(shares).sum())


def selection_weights(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """The weights by which the remaining groups are compared, float64 [n], from scores [G].

    Under top_p with softmax they are the probabilities, otherwise the scores themselves.
    """
    remaining = np.asarray(scores, dtype=np.float64)[remaining_groups(scores, config)]
    by_mass = config.strategy == "top_p" and config.mode == "softmax" and not config.soft
    return softmax(remaining, config) if by_mass and len(remaining) else remaining


def kept_mass(scores: np.ndarray, groups: np.ndarray) -> float | None:
    """The kept groups' share of the sum of scores [G].

    None if the sum is 0, or a score is below 0.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if (scores < 0).any() or not scores.any():
        return None
    return float(scores[groups].sum() / scores.sum())


def filter_row(
    scores: np.ndarray, kept: Sequence[np.ndarray], weights: np.ndarray, config: FilterConfig
) -> dict[str, float | None]:
    """Log entries of the filter; None where something is not defined, such as a mean of nothing.

    `filter_effective_groups` is the `effective_number` of the `selection_weights`: how many equal
    groups the batch amounts to before the selection. If it is near 1, nearly all values of a
    strategy keep the same groups.
    """
    groups = kept_groups(kept)
    return {
        "filter_kept_groups": int(groups.sum()),
        "filter_kept_trajectories": int(sum(row.sum() for row in kept)),
        "filter_kept_mass": kept_mass(scores, groups),
        "filter_effective_groups": effective_number(selection_weights(scores, config)),
        "filter_zero_groups": int(is_zero(scores, config.zero_tolerance).sum()),
        "filter_mean_score": float(scores.mean()) if len(scores) else None,
        "filter_mean_kept_score": float(scores[groups].mean()) if groups.any() else None,
        "filter_empty": int(not np.any(weights)),
    }
