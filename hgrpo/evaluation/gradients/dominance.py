"""Which part of the loss has the larger gradient where returns differ least, and most."""

from collections.abc import Sequence

import pandas as pd
from scipy import stats

from hgrpo.evaluation.gradients.student import student
from hgrpo.evaluation.gradients.table import REGULARISERS, TASK
from hgrpo.evaluation.gradients.weighted_norms import BY
from hgrpo.evaluation.statistics import holm

INCONCLUSIVE, REGULARISERS_DOMINATE = "inconclusive", "regularisers dominate"
TASK_DOMINATES = "the task dominates"


def dominance(norms: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """The squared norm of the regularisers' gradient minus that of the task's.

    It is taken in the buckets where returns differ least and most. Squares are compared because
    their estimates are unbiased. A norm that is set to 0 where noise explains it is not: if a small
    gradient of the task disappears in the noise of every seed, the regularisers would seem to
    dominate for certain.

    Args:
        norms: from `hgrpo.evaluation.gradients.weighted_norms`.

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
        return INCONCLUSIVE
    return REGULARISERS_DOMINATE if difference > 0 else TASK_DOMINATES
