"""How the norms of gradients follow the deviation of returns, with intervals over seeds.

RAGEN reads its own plots so: the task's norm rises with the deviation of the returns, those of the
regularisers stay flat, and so the regularisers dominate where returns differ little
(https://github.com/mll-lab-nu/RAGEN). It shows one run. Here each seed is one observation.
"""

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.evaluation.gradients.student import student
from hgrpo.evaluation.gradients.weighted_norms import BY


def slopes(norms: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """The slope of each component's norm over the deviation, and relative to its mean norm.

    Each seed gives the least-squares slope through its buckets; the interval is Student's over
    seeds. It is nan with one seed.

    Args:
        norms: from `hgrpo.evaluation.gradients.weighted_norms`.
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


def _slope(part: pd.DataFrame) -> tuple[float, float]:
    """The slope through a seed's buckets, and the mean of their norms."""
    deviation, norm = part["deviation"].to_numpy(), part["norm"].to_numpy()
    if np.ptp(deviation) == 0:
        return np.nan, float(norm.mean())
    return float(stats.linregress(deviation, norm).slope), float(norm.mean())
