"""Norms of the buckets' gradients, as the loss weighs them and without what noise adds."""

import pandas as pd

from hgrpo.evaluation.gradients.buckets import ALL

BY = ["method", "round", "pass"]


def weighted_norms(table: pd.DataFrame) -> pd.DataFrame:
    """Norms of the buckets, without what noise adds, times the coefficients.

    Args:
        table: rows of buckets.csv with the columns method, seed and round.

    Returns:
        The columns of `BY`, seed, bucket, component, deviation, norm and square. `norm` is 0 where
        noise explains all of it; `square` is its unbiased square, which is below 0 there.
    """
    rows = table[table["bucket"] != ALL].copy()
    rows["square"] = rows["coefficient"] ** 2 * rows["signal"]
    rows["norm"] = rows["coefficient"] * rows["corrected"]
    kept = [*BY, "seed", "bucket", "component", "deviation", "norm", "square"]
    return rows[kept].reset_index(drop=True)
