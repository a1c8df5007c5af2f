"""Which groups a strategy keeps, and which of their trajectories.

A strategy gets the scores [n] of the remaining groups and the number of all groups, and returns
the places of those that it keeps.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hgrpo.learning.filters.settings import FilterConfig

# A share counts as reached in spite of rounding, such as that of ten times 0.1.
ROUNDING = 1e-12


def select_groups(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """Which groups are kept, bool [G], from their scores [G].

    Groups whose score is 0 go first, unless `include_zero`. Under `within_group` and `soft` all
    remaining groups are kept.
    """
    scores = np.asarray(scores, dtype=np.float64)
    chosen = np.zeros(len(scores), dtype=bool)
    remaining = remaining_groups(scores, config)
    if len(remaining):
        # `within_group` selects no groups.
        if select := _STRATEGIES.get(config.strategy):
            remaining = remaining[select(scores[remaining], config, len(scores))]
        chosen[remaining] = True
    return chosen


def remaining_groups(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """Places of the groups that the selection is among."""
    return np.flatnonzero(config.include_zero | ~is_zero(scores, config.zero_tolerance))


def is_zero(scores: np.ndarray, tolerance: float) -> np.ndarray:
    """Which scores count as 0, bool [G]."""
    return np.abs(scores) <= tolerance


def _ordered(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """Places of the scores, those to keep first."""
    return np.argsort(scores if config.order == "smallest" else -scores, kind="stable")


def softmax(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """Probabilities [n]; the groups to keep first have the largest."""
    signed = scores if config.order == "largest" else -scores
    exponentials = np.exp((signed - signed.max()) / config.temperature)
    return exponentials / exponentials.sum()


def _top_p(scores: np.ndarray, config: FilterConfig, _total: int) -> np.ndarray:
    if config.value >= 1:
        return np.arange(len(scores))
    return (_top_p_softmax if config.mode == "softmax" else _top_p_linear)(scores, config)


def _top_p_softmax(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """The shortest prefix whose probabilities reach `value`: at least one group."""
    order = _ordered(scores, config)
    mass = np.cumsum(softmax(scores, config)[order])
    return order[: np.searchsorted(mass, config.value - ROUNDING) + 1]


def _top_p_linear(scores: np.ndarray, config: FilterConfig) -> np.ndarray:
    """The shortest prefix of positive scores whose sum reaches `value` * sum - eps.

    It is empty if that bound is not above 0, or if the positive scores do not reach it. Where the
    smallest scores come first, a 0 among them ends the walk at once.
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
    """A share of so many, rounded down."""
    return int(np.floor(share * many * (1 + ROUNDING)))


def _first(scores: np.ndarray, config: FilterConfig, many: int) -> np.ndarray:
    """As many as wanted of the ordered groups, or all that remain; at least one."""
    return _ordered(scores, config)[: max(1, many)]


def _min_p(scores: np.ndarray, config: FilterConfig, _total: int) -> np.ndarray:
    """Scores of at least `value` * max; with `smallest`, of at most min / `value`."""
    if config.order == "largest":
        return np.flatnonzero(scores >= config.value * scores.max() * (1 - ROUNDING))
    return np.flatnonzero(scores <= scores.min() / config.value * (1 + ROUNDING))


def _percentile(scores: np.ndarray, config: FilterConfig, _total: int) -> np.ndarray:
    """Ranks r (0 is the lowest score) with low <= r / n < high; neighbouring bands share none."""
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
    """Which trajectories are kept, G arrays bool [K], from returns (G arrays [K]) and groups [G].

    Under `within_group` it is the share `value` of each kept group, rounded down, at least one.
    Otherwise a kept group is kept as a whole.
    """
    share = config.value if config.strategy == "within_group" else 1.0
    return [
        most_varied(row, max(1, share_of(share, len(row))) if whole else 0)
        for row, whole in zip(returns, groups, strict=True)
    ]


def most_varied(values: np.ndarray, many: int) -> np.ndarray:
    """A subset of `many` of the values [K] whose variance is largest, as bool [K].

    Some such subset consists of the lowest j values and the highest `many` - j, so it suffices to
    compare `many` + 1 of them. Of equally good ones the one with most low values is taken.
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
    """Whether something of each group is kept, bool [G], from G arrays bool [K]."""
    return np.array([row.any() for row in masks], dtype=bool)
