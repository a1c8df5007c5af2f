"""Bootstraps over groups. Whole groups are resampled, because the turns of a group are dependent.

Statistics are functions of sums over turns, and are computed on all resamples at once. The first
resample contains every group once, so that the statistic's first value is the estimate.
"""

import numpy as np

from hgrpo.games.streams import generator

RESAMPLES = 2000
# With fewer groups, percentile intervals are far too narrow.
FEWEST = 8
# An interval is NaN if the statistic is undefined on more than this share of the resamples.
_UNDEFINED = 0.05


def resamples(groups: int, number: int = RESAMPLES) -> np.ndarray:
    """Multiplicity of each group, float64 [1 + number, groups]; the first row is all ones.

    With fewer than `FEWEST` groups there is only the first row, and hence no interval.
    """
    if groups < FEWEST:
        return np.ones((1, groups))
    rng = generator("truth-bootstrap", groups)
    drawn = rng.multinomial(groups, np.full(groups, 1 / groups), size=number)
    return np.vstack([np.ones(groups), drawn])


def estimate(values: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """Return (estimate, lower, upper), from a statistic's values on all rows of `resamples`.

    The interval is a percentile interval, which includes infinite values. Its limits are NaN if
    there is only one row, or if the statistic is NaN on more than one in twenty of the rows.
    """
    drawn = values[1:]
    known = drawn[~np.isnan(drawn)]
    if not len(known) or len(known) < (1 - _UNDEFINED) * len(drawn):
        return float(values[0]), np.nan, np.nan
    ends = [(1 - level) / 2, (1 + level) / 2]
    # Do not interpolate between resamples, because interpolation of infinite values is undefined.
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
    """above / below; NaN where `below` is not positive."""
    positive = below > 0
    return np.where(positive, above / np.where(positive, below, 1.0), np.nan)
