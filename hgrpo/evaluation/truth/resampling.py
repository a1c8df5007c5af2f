"""Bootstrap over groups: draws whole groups with replacement, as turns of a group are dependent.

Statistics are functions of sums over turns. They take the weights of many resamples at once, and
their first resample holds every group once, so their first value is the estimate itself.
"""

import numpy as np

from hgrpo.games.streams import generator

RESAMPLES = 2000
# Percentile intervals from fewer groups are far too narrow.
FEWEST = 8
# If more of the resamples than this have no value, there is no interval.
_UNDEFINED = 0.05


def resamples(groups: int, number: int = RESAMPLES) -> np.ndarray:
    """How often each group is drawn, float64 [1 + number, groups]; first every group once.

    With fewer groups than `FEWEST` there is only the first row, so nothing has an interval.
    """
    if groups < FEWEST:
        return np.ones((1, groups))
    rng = generator("truth-bootstrap", groups)
    drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=number)
    return np.vstack([np.ones(groups), drawn])


def estimate(values: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """The estimate and its percentile interval, from a statistic's values on `resamples`.

    Infinite values count. The limits are NaN without resamples, and if the statistic is undefined
    on more than one in twenty.
    """
    drawn = values[1:]
    known = drawn[~np.isnan(drawn)]
    if not len(known) or len(known) < (1 - _UNDEFINED) * len(drawn):
        return float(values[0]), np.nan, np.nan
    ends = [(1 - level) / 2, (1 + level) / 2]
    # Without interpolation, which is undefined between infinite values.
    lower, upper = np.quantile(known, ends, method="inverted_cdf")
    return float(values[0]), float(lower), float(upper)


def sums_by_group(columns: np.ndarray, owner: np.ndarray, groups: int) -> np.ndarray:
    """Sums of each column over the turns of each group, float64 [groups, columns].

    Args:
        columns: float64 [columns, turns].
        owner: int [turns], the group of each turn.
    """
    return np.array([np.bincount(owner, column, minlength=groups) for column in columns]).T


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below, and NaN where `below` is not above 0."""
    positive = below > 0
    return np.where(positive, above / np.where(positive, below, 1.0), np.nan)
