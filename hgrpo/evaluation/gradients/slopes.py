"""Summarises bucket statistics over seeds: means, norms, slopes and tests of dominance.

RAGEN (https://github.com/mll-lab-nu/RAGEN) concludes from plots of a single run that the norm of
the task gradient rises with the standard deviation of returns, but the norms of the regularisers'
gradients do not. The regularisers would then dominate if returns hardly vary. Here we test this
claim with one observation per seed.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.evaluation.gradients.buckets import ALL
from hgrpo.evaluation.gradients.table import REGULARISERS, TASK
from hgrpo.evaluation.over_seeds import seed_interval
from hgrpo.evaluation.statistics import holm

BY = ["method", "round", "pass"]
_NUMBERS = ["norm", "noise", "square", "lower", "upper"]
Numbers = TypeVar("Numbers", float, np.ndarray, pd.Series)
KEYS = ["method", "round", "pass", "bucket", "component"]
COUNTS = ("groups", "tokens")
MEASURES = ("norm", "corrected", "signal_to_noise", "cosine_to_all")
INCONCLUSIVE, RISES, FALLS = "inconclusive", "rises", "falls"
NO_GRADIENT, NO_TASK = "no gradient", "the task has no gradient"
REGULARISERS_DOMINATE, TASK_DOMINATES = "the regularisers dominate", "the task dominates"


def weighted_norms(table: pd.DataFrame) -> pd.DataFrame:
    """Compute each bucket's weighted gradient norms, and squared norms corrected for noise.

    Args:
        table: rows of buckets.csv with the columns method, seed and round.

    Returns:
        The columns of `BY`, seed, bucket, component, groups, deviation, norm, noise, square, lower
        and upper. `norm` is the component's coefficient times the norm of the measured gradient,
        and `noise` is the expected contribution of noise to the square of `norm`. `square` is
        `norm` squared minus `noise`. It is not clipped at 0, to avoid a bias. `lower` and `upper`
        are a seed's bootstrap interval (over groups) of the noise-corrected norm.
    """
    rows = table[table["bucket"] != ALL].copy()
    rows["norm"] *= rows["coefficient"]
    rows["square"] = rows["coefficient"] ** 2 * rows["signal"]
    rows["noise"] = rows["norm"] ** 2 - rows["square"]
    for end in ("lower", "upper"):
        rows[end] = rows["coefficient"] * rows[f"corrected_{end}"]
    columns = [*BY, "seed", "bucket", "component", "groups", "deviation", *_NUMBERS]
    return rows[columns].reset_index(drop=True)


def signed_root(square: Numbers) -> Numbers:
    """Square root of |square| with the sign of `square`.

    A noise-corrected squared norm may be negative by chance. Setting such norms to 0 would bias
    means upwards.
    """
    return np.sign(square) * np.sqrt(np.abs(square))


def student(name: str, values: Sequence[float], level: float) -> dict[str, float]:
    """Return the mean as column `name`, and its t interval as <name>_lower and <name>_upper.

    The mean of an empty sequence is NaN. The interval is NaN if there are fewer than two values or
    if a value is not finite.
    """
    mean = float(np.mean(values)) if len(values) else np.nan
    lower = upper = np.nan
    if len(values) > 1 and np.isfinite(values).all():
        interval = seed_interval(np.asarray(values), level)
        lower, upper = interval.lower, interval.upper
    return {name: mean, f"{name}_lower": lower, f"{name}_upper": upper}


def student_p(values: Sequence[float]) -> float:
    """p-value of a t test for a mean of 0; NaN if a value is not finite.

    The p-value is 1 if there is only one value or all values are 0.
    """
    if not np.isfinite(values).all():
        return np.nan
    if len(values) < 2 or not np.any(values):
        return 1.0
    return float(stats.ttest_1samp(values, 0.0).pvalue)


def holm_where_tested(p_values: Sequence[float]) -> np.ndarray:
    """Return Holm-adjusted p-values, float [n]. NaN stays NaN and does not count as a test."""
    corrected = np.array(p_values, dtype=np.float64)
    tested = ~np.isnan(corrected)
    corrected[tested] = holm(corrected[tested].tolist())
    return corrected


def slopes(norms: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """Regress each component's squared norm on the standard deviation of returns.

    Each seed contributes the least-squares slope over its buckets. We use squared norms because
    their estimates are nearly unbiased. Norms clipped at 0 are biased upwards by noise. This noise
    grows with the deviation of returns, so clipped norms would rise even if all gradients were 0.

    Args:
        norms: from `weighted_norms`.

    Returns:
        The columns of `BY`, component, seeds, mean (of squared norms, over buckets and seeds), the
        slope with its t interval over seeds, p, p_holm and verdict. `p` is the slope's p-value, and
        `p_holm` is corrected by Holm's method over the rows of a component. The verdict is
        inconclusive unless `p_holm` is below 1 - level. A slope is NaN if all buckets have the same
        deviation. `p` is NaN if the component's gradient is exactly 0 in all buckets, as is the
        gradient of the KL if the policy is also the reference policy.
    """
    rows = []
    for (*key, component), part in norms.groupby([*BY, "component"], sort=False):
        each = [_slope(run) for _, run in part.groupby("seed")]
        tested = bool(part["norm"].any())
        rows.append(
            dict(zip(BY, key, strict=True))
            | {"component": component, "seeds": len(each), "mean": part["square"].mean()}
            | student("slope", each, level)
            | {"tested": tested, "p": student_p(each) if tested else np.nan}
        )
    table = pd.DataFrame(rows)
    table["p_holm"] = table.groupby("component")["p"].transform(holm_where_tested)
    direction = np.where(table["slope"] > 0, RISES, FALLS)
    verdict = np.where(table["p_holm"] < 1 - level, direction, INCONCLUSIVE)
    table["verdict"] = np.where(table["tested"], verdict, NO_GRADIENT)
    return table.drop(columns="tested")


def _slope(part: pd.DataFrame) -> float:
    deviation, square = part["deviation"].to_numpy(), part["square"].to_numpy()
    if np.ptp(deviation) == 0:
        return np.nan
    return float(stats.linregress(deviation, square).slope)


def dominance(norms: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """Squared norm of the regularisers' gradient minus that of the task gradient.

    The difference is computed in the buckets with the lowest and the highest deviation of returns.
    We compare squared norms because their estimates are nearly unbiased. If norms were clipped at
    0, a task gradient below the noise would be 0 in every seed, without variance, so that the
    regularisers would seem to dominate with certainty.

    If returns do not vary within any group of a bucket, all advantages and the task gradient are 0.
    The row of such a bucket has a separate verdict and is not tested.

    Args:
        norms: from `weighted_norms`.

    Returns:
        The columns of `BY`, place (lowest or highest), seeds, the difference with its interval over
        seeds, p, p_holm and verdict. `p_holm` is corrected by Holm's method over all tested rows.
        The verdict is inconclusive unless `p_holm` is below 1 - level.
    """
    rows = []
    for key, part in norms.groupby(BY, sort=False):
        for place in ("lowest", "highest"):
            ends = [_end(run, place) for _, run in part.groupby("seed")]
            each = [float(end["square", REGULARISERS] - end["square", TASK]) for end in ends]
            tested = any(end["norm", TASK] for end in ends)
            rows.append(
                dict(zip(BY, key, strict=True))
                | {"place": place, "seeds": len(each)}
                | student("difference", each, level)
                | {"tested": tested, "p": student_p(each) if tested else np.nan}
            )
    corrected = holm_where_tested([row["p"] for row in rows])
    verdicts = [
        _verdict(row["difference"], p < 1 - level) if row["tested"] else NO_TASK
        for row, p in zip(rows, corrected, strict=True)
    ]
    table = pd.DataFrame(rows).drop(columns="tested")
    return table.assign(p_holm=corrected, verdict=verdicts)


def _end(part: pd.DataFrame, place: str) -> pd.Series:
    """`norm` and `square` of each component in the bucket of lowest or highest deviation."""
    # Several buckets may share the same deviation (e.g. 0); ties keep their original order.
    ordered = part[part["component"] == TASK].sort_values("deviation", kind="stable")
    bucket = ordered["bucket"].iloc[0 if place == "lowest" else -1]
    return part[part["bucket"] == bucket].set_index("component")[["norm", "square"]].unstack()


def _verdict(difference: float, sure: bool) -> str:
    if not sure:
        return INCONCLUSIVE
    return REGULARISERS_DOMINATE if difference > 0 else TASK_DOMINATES


def bucket_means(table: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """Average the bucket statistics over seeds. There is one row per combination of `KEYS`.

    Each statistic is averaged over the seeds in which it is defined, with a t interval. With one
    seed, the interval is copied from `table` if available. `corrected` is the signed root of the
    mean signal, because a mean of norms clipped at 0 would be too large. `cosine` is the cosine
    between the gradients of the task and of the regularisers. It is the same for both components.

    Args:
        table: rows of buckets.csv with the columns method, seed and round.
    """
    other = {TASK: REGULARISERS, REGULARISERS: TASK}
    rows = []
    for key, part in table.groupby(KEYS, sort=False):
        row = dict(zip(KEYS, key, strict=True))
        row |= {name: part[name].mean() for name in (*COUNTS, "deviation")}
        component = row["component"]
        cosine = part[f"cosine_to_{other[component]}"] if component in other else None
        for name in MEASURES:
            row |= _measure(name, part, level)
        row["cosine"] = np.nan if cosine is None else cosine.mean()
        rows.append(row)
    return pd.DataFrame(rows)


def _measure(name: str, part: pd.DataFrame, level: float) -> dict[str, float]:
    if len(part) > 1 and name == "corrected":
        interval = student(name, part["signal"].tolist(), level)
        return {column: signed_root(value) for column, value in interval.items()}
    if len(part) > 1:
        return student(name, part[name].dropna().tolist(), level)
    ends = (f"{name}_lower", f"{name}_upper")
    row = part.iloc[0]
    return {name: row[name]} | {end: row.get(end, np.nan) for end in ends}
