"""How the squared norms of gradients follow the deviation of returns, with intervals over seeds.

RAGEN reads its own plots so: the task's norm rises with the deviation of the returns, those of the
regularisers stay flat, and so the regularisers dominate where returns differ little
(https://github.com/mll-lab-nu/RAGEN). It shows one run. Here each seed is one observation.
"""

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.evaluation.gradients.student import holm_where_tested, student, student_p
from hgrpo.evaluation.gradients.weighted_norms import BY

RISES, FALLS, INCONCLUSIVE, NO_GRADIENT = "rises", "falls", "inconclusive", "no gradient"


def slopes(norms: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """The slope of each component's squared norm over the deviation.

    Each seed gives the least-squares slope through its buckets. Squares are taken, because their
    estimates are nearly unbiased. A norm that is set to 0 where noise explains it is the larger,
    the larger the noise is. Noise grows with the deviation of returns, so such norms would rise
    even if there were no gradient at all.

    Args:
        norms: from `hgrpo.evaluation.gradients.weighted_norms`.

    Returns:
        The columns of `BY`, component and seeds; `mean`, the mean square of its buckets and seeds;
        the slope with Student's interval over seeds; its p-value, plain and after Holm's correction
        over the rows of the same component; and a verdict, which is inconclusive unless the
        corrected p-value is below 1 - level. A slope is NaN where all buckets have one deviation. A
        component whose gradient is exactly 0 in all buckets, as the KL to a reference that is the
        policy itself, has no p-value.
    """
    rows = []
    for (*key, component), part in norms.groupby([*BY, "component"], sort=False):
        each = [_slope(own) for _, own in part.groupby("seed")]
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
    """The slope through a seed's buckets."""
    deviation, square = part["deviation"].to_numpy(), part["square"].to_numpy()
    if np.ptp(deviation) == 0:
        return np.nan
    return float(stats.linregress(deviation, square).slope)
