"""Which part of the loss has the larger gradient where returns differ least, and most."""

import numpy as np
import pandas as pd

from hgrpo.evaluation.gradients.student import holm_where_tested, student, student_p
from hgrpo.evaluation.gradients.table import REGULARISERS, TASK
from hgrpo.evaluation.gradients.weighted_norms import BY

INCONCLUSIVE, NO_TASK = "inconclusive", "the task has no gradient"
REGULARISERS_DOMINATE, TASK_DOMINATES = "the regularisers dominate", "the task dominates"


def dominance(norms: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """The squared norm of the regularisers' gradient minus that of the task's.

    It is taken in the buckets where returns differ least and most. Squares are compared because
    their estimates are nearly unbiased. A norm that is set to 0 where noise explains it is not: if
    a small gradient of the task disappears in the noise of every seed, the regularisers would seem
    to dominate for certain.

    Where all returns of a bucket's groups are equal, advantages from groups are 0, and so is the
    task's gradient. That the regularisers are larger there follows from the formula. It is said,
    and not tested.

    Args:
        norms: from `hgrpo.evaluation.gradients.weighted_norms`.

    Returns:
        The columns of `BY`; `place` (lowest or highest); the difference with its interval over
        seeds; its p-value, plain and after Holm's correction over all rows that are tested; and a
        verdict, which is inconclusive unless the corrected p-value is below 1 - level.
    """
    rows = []
    for key, part in norms.groupby(BY, sort=False):
        for place in ("lowest", "highest"):
            ends = [_end(own, place) for _, own in part.groupby("seed")]
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
    """Norm and square of each component in a seed's first or last bucket: (column, component)."""
    # Buckets may have one deviation, such as 0; then they keep their order.
    ordered = part[part["component"] == TASK].sort_values("deviation", kind="stable")
    bucket = ordered["bucket"].iloc[0 if place == "lowest" else -1]
    return part[part["bucket"] == bucket].set_index("component")[["norm", "square"]].unstack()


def _verdict(difference: float, sure: bool) -> str:
    if not sure:
        return INCONCLUSIVE
    return REGULARISERS_DOMINATE if difference > 0 else TASK_DOMINATES
