"""Applies the filter to a batch of groups: scores, masks, weights and log entries.

A strategy is a function that takes the scores [n] of the remaining groups, the settings and the
number of all groups. It returns the indices, within these scores, of the groups to keep.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hgrpo.learning.filters.settings import FilterConfig, Score

# Relative tolerance for rounding errors in shares. For example, 0.1 added ten times is not 1.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Measures:
    """Data on the K trajectories of a group, from which the group's score is computed.

    Attributes:
        returns: float [K].
        successes: bool or float [K].
        lengths: int [K], numbers of sampled tokens.
        entropies: float [K], the policy's mean entropy per sampled token of each trajectory, in
            nats; used only by the entropy scores.
    """

    returns: np.ndarray
    successes: np.ndarray
    lengths: np.ndarray
    entropies: np.ndarray | None = None


def sample_variance(values: np.ndarray) -> float:
    """Sample variance (ddof 1) of values [K]; 0 for a single value and for equal values."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2 or np.all(values == values[0]):
        return 0.0
    return float(values.var(ddof=1))


def sample_deviation(values: np.ndarray) -> float:
    """Sample standard deviation of values [K], called reward variance in RAGEN's code."""
    return float(np.sqrt(sample_variance(values)))


def mean_deviation(returns: Sequence[np.ndarray]) -> float:
    """Mean of `sample_deviation` over groups of returns, G arrays [K]; 0 without groups."""
    return float(np.mean([sample_deviation(row) for row in returns])) if len(returns) else 0.0


_SCORES: dict[Score, Callable[[Measures], float]] = {
    "deviation": lambda group: sample_deviation(group.returns),
    "variance": lambda group: sample_variance(group.returns),
    "success_variance": lambda group: sample_variance(group.successes),
    "mean": lambda group: float(np.mean(group.returns)),
    "sum": lambda group: float(np.sum(group.returns)),
    "entropy": lambda group: float(np.mean(group.entropies)),
    "entropy_deviation": lambda group: sample_deviation(group.entropies),
    "length": lambda group: float(np.mean(group.lengths)),
}


def group_scores(groups: Sequence[Measures], score: Score) -> np.ndarray:
    """Score of each group, float64 [G]. Variances have ddof 1 and are 0 for a single trajectory."""
    return np.array([_SCORES[score](group) for group in groups], dtype=np.float64)


def filter_batch(
    groups: Sequence[Measures], config: FilterConfig
) -> tuple[list[np.ndarray], np.ndarray, dict[str, float | None]]:
    """Apply the filter to a batch of groups.

    Returns:
        - Masks of the kept trajectories, G arrays bool [K].
        - Factors by which to multiply the groups' advantages (soft weights or loss scaling),
          float64 [G]; 0 for dropped groups.
        - Log entries, see `filter_row`.
    """
    scores = group_scores(groups, config.score)
    returns = [group.returns for group in groups]
    masks = select_trajectories(returns, select_groups(scores, config), config)
    # If whole groups of equal size are kept, `share` is the share of kept groups, as in RAGEN.
    share = float(np.concatenate(masks).mean()) if masks else 1.0
    factors = {"none": 1.0, "linear": share, "sqrt": share**0.5}
    weights = kept_groups(masks) * factors[config.loss_scaling]
    zero = is_zero(scores, config.zero_tolerance)
    if config.soft:
        weights = np.zeros_like(scores) if zero.all() else np.where(zero, 0, scores / scores.max())
    return masks, weights, filter_row(scores, masks, weights, config)


def effective_number(weights: np.ndarray) -> float | None:
    """Kish's effective sample size (sum w)^2 / sum w^2 of weights [n], from 1 to n.

    The result is None if any weight is negative or all weights are 0.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if (weights < 0).any() or not weights.any():
        return None
    shares = weights / weights.max()
    return float(shares.sum() ** 2 / np.square(shares).sum())


def selection_weights(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """Scores [n] of the remaining groups, or their softmax probabilities if top_p uses softmax."""
    remaining = np.asarray(scores, dtype=np.float64)[remaining_groups(scores, config)]
    by_mass = config.strategy == "top_p" and config.mode == "softmax" and not config.soft
    return softmax(remaining, config) if by_mass and len(remaining) else remaining


def filter_row(
    scores: np.ndarray, masks: Sequence[np.ndarray], weights: np.ndarray, config: FilterConfig
) -> dict[str, float | None]:
    """Log entries of the filter. Entries that are undefined, such as a mean of no groups, are None.

    `filter_effective_groups` is the `effective_number` of the `selection_weights`. If it is close
    to 1, the selection hardly depends on `value`.
    """
    groups, shared = kept_groups(masks), (scores >= 0).all() and scores.any()
    return {
        "filter_kept_groups": int(groups.sum()),
        "filter_kept_trajectories": int(sum(row.sum() for row in masks)),
        "filter_kept_mass": float(scores[groups].sum() / scores.sum()) if shared else None,
        "filter_effective_groups": effective_number(selection_weights(scores, config)),
        "filter_zero_groups": int(is_zero(scores, config.zero_tolerance).sum()),
        "filter_mean_score": float(scores.mean()) if len(scores) else None,
        "filter_mean_kept_score": float(scores[groups].mean()) if groups.any() else None,
        "filter_empty": int(not np.any(weights)),
    }


def select_groups(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """Select groups by their scores [G]; return a mask of the kept groups, bool [G].

    Groups with score 0 are dropped first, unless `include_zero` is set. With `within_group` or
    `soft`, all remaining groups are kept.
    """
    scores = np.asarray(scores, dtype=np.float64)
    chosen = np.zeros(len(scores), dtype=bool)
    remaining = remaining_groups(scores, config)
    if len(remaining):
        # `within_group` does not select groups.
        if select := _STRATEGIES.get(config.strategy):
            remaining = remaining[select(scores[remaining], config, len(scores))]
        chosen[remaining] = True
    return chosen


def remaining_groups(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """Indices of the groups to select from."""
    return np.flatnonzero(config.include_zero | ~is_zero(scores, config.zero_tolerance))


def is_zero(scores: np.ndarray, tolerance: float) -> np.ndarray:
    """Whether each score counts as 0, bool [G]."""
    return np.abs(scores) <= tolerance


def _ordered(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    return np.argsort(scores if config.order == "smallest" else -scores, kind="stable")


def softmax(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """Probabilities [n], largest for the preferred groups."""
    signed = scores if config.order == "largest" else -scores
    exponentials = np.exp((signed - signed.max()) / config.temperature)
    return exponentials / exponentials.sum()


def _top_p(scores: np.ndarray, config: FilterConfig, _total: int) -> np.ndarray:
    if config.value >= 1:
        return np.arange(len(scores))
    return (_top_p_softmax if config.mode == "softmax" else _top_p_linear)(scores, config)


def _top_p_softmax(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """The fewest groups, best first, whose probabilities sum to at least `value`."""
    order = _ordered(scores, config)
    mass = np.cumsum(softmax(scores, config)[order])
    return order[: np.searchsorted(mass, config.value - ROUNDING) + 1]


def _top_p_linear(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """The shortest sequence of groups, best first, with a sum of scores >= `value` * sum - eps.

    No group is kept if this bound is not positive, if the positive scores do not reach it, or if
    the order is `smallest` and a score is 0.
    """
    order = _ordered(scores, config)
    walked = scores[order]
    sums = np.cumsum(walked)
    bound = config.value * sums[-1] - config.eps
    if bound <= 0:
        return order[:0]
    positive = len(walked) if (walked > 0).all() else int(np.argmin(walked > 0))
    reached = np.flatnonzero(sums[:positive] >= bound * (1 - ROUNDING))
    return order[: reached[0] + 1] if len(reached) else order[:0]


def _top_k(scores: np.ndarray, config: FilterConfig, total: int) -> np.ndarray:
    base = total if config.of == "all" else len(scores)
    return _first(scores, config, share_of(config.value, base))


def share_of(share: float, many: int) -> int:
    """`share` * `many`, rounded down."""
    return int(np.floor(share * many * (1 + ROUNDING)))


def _first(scores: np.ndarray, config: FilterConfig, many: int) -> np.ndarray:
    return _ordered(scores, config)[: max(1, many)]


def _min_p(scores: np.ndarray, config: FilterConfig, _total: int) -> np.ndarray:
    """Groups whose score is within the factor `value` of the best (largest or smallest) score."""
    if config.order == "largest":
        return np.flatnonzero(scores >= config.value * scores.max() * (1 - ROUNDING))
    return np.flatnonzero(scores <= scores.min() / config.value * (1 + ROUNDING))


def _percentile(scores: np.ndarray, config: FilterConfig, _total: int) -> np.ndarray:
    """Groups whose rank r among n groups (0 for the lowest score) satisfies low <= r / n < high."""
    bounds = np.array([config.low, config.high]) * len(scores) * (1 - ROUNDING)
    first, end = np.ceil(bounds).astype(int)
    return np.argsort(scores, kind="stable")[first:end]


_STRATEGIES: dict[str, Callable[[np.ndarray, FilterConfig, int], np.ndarray]] = {
    "top_p": _top_p,
    "top_k": _top_k,
    "top_k_abs": lambda scores, config, _total: _first(scores, config, int(config.value)),
    "min_p": _min_p,
    "percentile": _percentile,
}


def select_trajectories(
    returns: Sequence[np.ndarray], groups: np.ndarray, config: FilterConfig
) -> list[np.ndarray]:
    """Select trajectories by `returns` within the kept `groups` [G]; return G masks bool [K].

    `within_group` keeps the share `value` of each kept group's trajectories, rounded down, but at
    least one trajectory. Other strategies keep all trajectories of a kept group.
    """
    share = config.value if config.strategy == "within_group" else 1.0
    return [
        most_varied(row, max(1, share_of(share, len(row))) if whole else 0)
        for row, whole in zip(returns, groups, strict=True)
    ]


def most_varied(values: np.ndarray, many: int) -> np.ndarray:
    """Select the subset of `many` values [K] with the largest variance; return a mask bool [K].

    An optimal subset consists of the j lowest and the `many` - j highest values, so only `many` + 1
    subsets are compared. If several are optimal, the one with the largest j is chosen.
    """
    values = np.asarray(values, dtype=np.float64)
    if many in (0, len(values)):
        return np.full(len(values), many > 0)
    order = np.argsort(values, kind="stable")
    place = np.arange(many)
    low = np.arange(many, -1, -1)[:, None]
    splits = np.where(place < low, place, len(values) - many + place)
    best = np.argmax(values[order][splits].var(axis=1))
    chosen = np.zeros(len(values), dtype=bool)
    chosen[order[splits[best]]] = True
    return chosen


def kept_groups(masks: Sequence[np.ndarray]) -> np.ndarray:
    """Mask of the groups with a kept trajectory, bool [G]; `masks` contains one mask per group."""
    return np.array([row.any() for row in masks], dtype=bool)
