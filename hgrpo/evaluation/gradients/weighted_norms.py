"""Squared norms of the buckets' gradients, as the loss weighs them and without what noise adds."""

from typing import TypeVar

import numpy as np
import pandas as pd

from hgrpo.evaluation.gradients.buckets import ALL

BY = ["method", "round", "pass"]
_NUMBERS = ["norm", "noise", "square", "lower", "upper"]
Numbers = TypeVar("Numbers", float, np.ndarray, pd.Series)


def weighted_norms(table: pd.DataFrame) -> pd.DataFrame:
    """Norms of the buckets times the coefficients, and their squares without what noise adds.

    Args:
        table: rows of buckets.csv with the columns method, seed and round.

    Returns:
        The columns of `BY`, seed, bucket, component, groups, deviation, norm, noise, square, lower
        and upper. `norm` is that of the gradient as it was measured, `noise` is the part of its
        square that noise adds, and `square` is the rest. It is not cut off at 0, because that would
        bias it. `lower` and `upper` are the ends of a seed's own interval for the norm without
        noise, by a bootstrap over groups.
    """
    rows = table[table["bucket"] != ALL].copy()
    rows["norm"] *= rows["coefficient"]
    rows["square"] = rows["coefficient"] ** 2 * rows["signal"]
    rows["noise"] = rows["norm"] ** 2 - rows["square"]
    for end in ("lower", "upper"):
        rows[end] = rows["coefficient"] * rows[f"corrected_{end}"]
    kept = [*BY, "seed", "bucket", "component", "groups", "deviation", *_NUMBERS]
    return rows[kept].reset_index(drop=True)


def signed_root(square: Numbers) -> Numbers:
    """The root of |square| with the sign of `square`.

    A squared norm without what noise adds is below 0 where the noise was large by chance. Setting
    such norms to 0 would make means too large; with their sign they stay visible.
    """
    return np.sign(square) * np.sqrt(np.abs(square))
