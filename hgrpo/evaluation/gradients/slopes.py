"""How the norms of gradients follow the deviation of returns, with intervals over seeds.

RAGEN reads its own plots so: the task's norm rises with the deviation of the returns, those of the
regularisers stay flat, and so the regularisers dominate where returns differ little
(https://github.com/mll-lab-nu/RAGEN). It shows one run. Here each seed is one observation.
"""

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.evaluation.gradients.buckets import ALL

TASK, REGULARISERS = "task", ("kl", "entropy")
BY = ["method", "round", "pass"]


def weighted_norms(table: pd.DataFrame) -> pd.DataFrame:
    """Norms of the buckets, without what noise adds, times the coefficients.

    Args:
        table: rows of buckets.csv with the columns method, seed and round.

    Returns:
        The columns of `BY`, seed, bucket, component, deviation and norm. The component
        `regularisers` is the sum of those of the KL and of the entropy.
    """
    rows = table[table["bucket"] != ALL].copy()
    rows["norm"] = rows["coefficient"] * rows["corrected"]
    keys = [*BY, "seed", "bucket"]
    kept = rows[[*keys, "component", "deviation", "norm"]]
    both = kept[kept["component"].isin(REGULARISERS)]
    both = both.groupby(keys, as_index=False).agg(
        deviation=("deviation", "first"), norm=("norm", "sum")
    )
    return pd.concat([kept, both.assign(component="regularisers")], ignore_index=True)


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
            | _interval("slope", own, level)
            | _interval("relative", relative, level)
        )
    return pd.DataFrame(rows)


def dominance(norms: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """The regularisers' norm minus the task's, where returns differ least and most.

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
            found = _interval("difference", each, level)
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
    wide = part.pivot(index="deviation", columns="component", values="norm").sort_index()
    row = wide.iloc[0 if place == "lowest" else -1]
    return float(row["regularisers"] - row[TASK])


def _interval(name: str, values: list[float], level: float) -> dict[str, float]:
    mean, lower, upper = float(np.mean(values)), np.nan, np.nan
    if len(values) > 1 and np.isfinite(values).all():
        half = stats.sem(values) * stats.t.ppf((1 + level) / 2, len(values) - 1)
        lower, upper = mean - half, mean + half
    return {name: mean, f"{name}_lower": lower, f"{name}_upper": upper}


def _verdict(lower: float, upper: float) -> str:
    if lower > 0:
        return "regularisers dominate"
    return "the task dominates" if upper < 0 else "inconclusive"
