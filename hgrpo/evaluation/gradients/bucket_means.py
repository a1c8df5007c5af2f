"""The table of buckets over seeds: means with intervals, or one seed's own bootstrap intervals."""

import numpy as np
import pandas as pd

from hgrpo.evaluation.gradients.slopes import signed_root, student
from hgrpo.evaluation.gradients.table import REGULARISERS, TASK

KEYS = ["method", "round", "pass", "bucket", "component"]
COUNTS = ("groups", "tokens")
MEASURES = ("norm", "corrected", "signal_to_noise", "cosine_to_all")


def bucket_means(table: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """One row for each of `KEYS`, in the table's order.

    Counts and the deviation are means over seeds. A measure is a mean over seeds with Student's
    interval, which seeds without a value leave out. `corrected` is the root of the mean signal,
    with its sign: a mean of norms that are set to 0 where noise explains them would be too large.
    With one seed a measure has the interval that the table gives, if any. `cosine` is that of the
    task with the regularisers, in rows of either.

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
