"""Squared norms of the buckets' gradients, as the loss weighs them and without what noise adds."""

import pandas as pd

from hgrpo.evaluation.gradients.buckets import ALL

BY = ["method", "round", "pass"]


def weighted_norms(table: pd.DataFrame) -> pd.DataFrame:
    """Norms of the buckets times the coefficients, and their squares without what noise adds.

    Args:
        table: rows of buckets.csv with the columns method, seed and round.

    Returns:
        The columns of `BY`, seed, bucket, component, deviation, norm, noise and square. `norm` is
        that of the gradient as it was measured, `noise` is the part of its square that noise adds,
        and `square` is the rest. It is unbiased, so it may be below 0.
    """
    rows = table[table["bucket"] != ALL].copy()
    rows["norm"] *= rows["coefficient"]
    rows["square"] = rows["coefficient"] ** 2 * rows["signal"]
    rows["noise"] = rows["norm"] ** 2 - rows["square"]
    kept = [*BY, "seed", "bucket", "component", "deviation", "norm", "noise", "square"]
    return rows[kept].reset_index(drop=True)
