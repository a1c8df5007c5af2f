"""Which trajectories of the kept groups are kept."""

from collections.abc import Sequence

import numpy as np

from hgrpo.learning.filters.groups import share_of
from hgrpo.learning.filters.settings import FilterConfig


def select_trajectories(
    returns: Sequence[np.ndarray], groups: np.ndarray, config: FilterConfig
) -> list[np.ndarray]:
    """Which trajectories are kept, G arrays bool [K], from returns (G arrays [K]) and groups [G].

    Under `within_group` it is the share `value` of each kept group, rounded down, at least one.
    Otherwise a kept group is kept as a whole.
    """
    share = config.value if config.strategy == "within_group" else 1.0
    return [
        most_varied(row, max(1, share_of(share, len(row))) if kept else 0)
        for row, kept in zip(returns, groups, strict=True)
    ]


def most_varied(values: np.ndarray, many: int) -> np.ndarray:
    """A subset of `many` of the values [K] whose variance is largest, as bool [K].

    Some such subset consists of the lowest j values and the highest `many` - j, so it suffices to
    compare `many` + 1 of them. Of equally good ones the one with most low values is taken.

    Raises:
        ValueError: `many` is not within 0 and K.
    """
    values = np.asarray(values, dtype=np.float64)
    if not 0 <= many <= len(values):
        raise ValueError(f"{many} of {len(values)} values are wanted")
    if many in (0, len(values)):
        return np.full(len(values), many > 0)
    order = np.argsort(values, kind="stable")
    place = np.arange(many)
    low = np.arange(many, -1, -1)[:, None]
    splits = np.where(place < low, place, len(values) - many + place)
    best = np.argmax(values[order][splits].var(axis=1))
    kept = np.zeros(len(values), dtype=bool)
    kept[order[splits[best]]] = True
    return kept


def kept_groups(kept: Sequence[np.ndarray]) -> np.ndarray:
    """Whether something of each group is kept, bool [G], from G arrays bool [K]."""
    return np.array([row.any() for row in kept], dtype=bool)
