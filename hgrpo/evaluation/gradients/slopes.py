"""How the norms of gradients follow the deviation of returns, with intervals over seeds.

RAGEN reads its own plots so: the task's norm rises with the deviation of the returns, those of the
regularisers stay flat, and so the regularisers dominate where returns differ little
(https://github.com/mll-lab-nu/RAGEN). It shows one run. Here each seed is one observation.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.evaluation.gradients.buckets import ALL
from hgrpo.evaluation.gradients.student import student
from hgrpo.evaluation.gradients.table import REGULARISERS, TASK
from hgrpo.evaluation.statistics import holm

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


def slopes(norms: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """The slope of each component's norm over the deviation, and relative to its mean norm.

    Each seed gives the least-squares slope through its buckets; the interval is Student's over
    seeds. It is nan with one seed.

    Args:
        norms: from `weighted_norms`.
    """
    rows = []
    for (*key, component), part in norms.groupby([*BY, "component"], sort=False):
        each = [_slope(own) for _, own in part.groupby("seed")]
        own = [slope for slope, _ in each]
        relative = [slope / mean if mean > 0 else np.nan for slope, mean in each]
        rows.append(
            dict(zip(BY, key, strict=True))
            | {"component": component, "seeds": len(each)}
            | student("slope", own, level)
            | student("relative", relative, level)
        )
    return pd.DataFrame(rows)


def dominance(norms: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """The squared norm of the regularisers' gradient minus that of the task's.

    It is taken in the buckets where returns differ least and most. Squares are compared because
    their estimates are unbiased. A norm that is set to 0 where noise explains it is not: if a small
    gradient of the task disappears in the noise of every seed, the regularisers would seem to
    dominate for certain.

    Args:
        norms: from `weighted_norms`.

    Returns:
        The columns of `BY`; `place` (lowest or highest); the difference with its interval over
        seeds; its p-value, plain and after Holm's correction over all rows; and a verdict, which is
        inconclusive unless the corrected p-value is below 1 - level.
    """
    rows = []
    for key, part in norms.groupby(BY, sort=False):
        for place in ("lowest", "highest"):
            each = [_difference(own, place) for _, own in part.groupby("seed")]
            rows.append(
                dict(zip(BY, key, strict=True))
                | {"place": place, "seeds": len(each)}
                | student("difference", each, level)
                | {"p": _p_value(each)}
            )
    corrected = holm([row["p"] for row in rows])
    verdicts = [
        _verdict(row["difference"], p < 1 - level) for row, p in zip(rows, corrected, strict=True)
    ]
    return pd.DataFrame(rows).assign(p_holm=corrected, verdict=verdicts)


def _slope(part: pd.DataFrame) -> tuple[float, float]:
    """The slope through a seed's buckets, and the mean of their norms."""
    deviation, norm = part["deviation"].to_numpy(), part["norm"].to_numpy()
    if np.ptp(deviation) == 0:
        return np.nan, float(norm.mean())
    return float(stats.linregress(deviation, norm).slope), float(norm.mean())


def _difference(part: pd.DataFrame, place: str) -> float:
    # Buckets may have one deviation, such as 0; then they keep their order.
    ordered = part[part["component"] == TASK].sort_values("deviation", kind="stable")
    bucket = ordered["bucket"].iloc[0 if place == "lowest" else -1]
    square = part[part["bucket"] == bucket].set_index("component")["square"]
    return float(square[REGULARISERS] - square[TASK])


def _p_value(values: Sequence[float]) -> float:
    """Of a mean other than 0, by Student's test; 1 for a single value."""
    if len(values) < 2:
        return 1.0
    return float(stats.ttest_1samp(values, 0.0).pvalue)


def _verdict(difference: float, sure: bool) -> str:
    if not sure:
        return "inconclusive"
    return "regularisers dominate" if difference > 0 else "the task dominates"
