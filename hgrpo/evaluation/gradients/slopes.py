"""How the norms of gradients follow the deviation of returns, with intervals over seeds.

RAGEN reads its own plots so: the task's norm rises with the deviation of the returns, those of the
regularisers stay flat, and so the regularisers dominate where returns differ little
(https://github.com/mll-lab-nu/RAGEN). It shows one run. Here each seed is one observation.
"""

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.evaluation.gradients.buckets import ALL
from hgrpo.evaluation.gradients.student import student
from hgrpo.evaluation.gradients.table import REGULARISERS, TASK

BY = ["method", "round", "pass"]


def weighted_norms(table: pd.DataFrame) -> pd.DataFrame:
    """Norms of the buckets, without what noise adds, times the coefficients.

    Args:
        table: rows of buckets.csv with the columns method, seed and round.

    Returns:
        The columns of `BY`, seed, bucket, component, deviation and norm.
    """
    rows = table[table["bucket"] != ALL].copy()
    rows["norm"] = rows["coefficient"] * rows["corrected"]
    return rows[[*BY, "seed", "bucket", "component", "deviation", "norm"]].reset_index(drop=True)


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
    """The norm of the regularisers' gradient minus that of the task's.

    It is taken in the buckets where returns differ least and most.

    Args:
        norms: from `weighted_norms`.

    Returns:
        The columns of `BY`; `place` (lowest or highest); the difference with its interval over
        seeds; and a verdict, which is inconclusive unless the interval excludes 0.
    """
    rows = []
    for key, part in norms.groupby(BY, sort=False):
        for place in ("lowest", "highest"):
            each = [_difference(own, place) for _, own in part.groupby("seed")]
            found = student("difference", each, level)
            rows.append(
                dict(zip(BY, key, strict=True))
                | {"place": place, "seeds": len(each)}
                | found
                | {"verdict": _verdict(found["difference_lower"], found["difference_upper"])}
            )
    return pd.DataFrame(rows)


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
    norm = part[part["bucket"] == bucket].set_index("component")["norm"]
    return float(norm[REGULARISERS] - norm[TASK])


def _verdict(lower: float, upper: float) -> str:
    if lower > 0:
        return "regularisers dominate"
    return "the task dominates" if upper < 0 else "inconclusive"
