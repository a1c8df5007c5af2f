"""Student's interval and test of a mean over seeds, for the columns of a table."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from hgrpo.evaluation.over_seeds import seed_interval
from hgrpo.evaluation.statistics import holm


def student(name: str, values: Sequence[float], level: float) -> dict[str, float]:
    """The mean under `name`, and its interval under <name>_lower and <name>_upper.

    The mean is NaN without values. The interval is NaN with fewer than two, and if one is not
    finite.
    """
    mean = float(np.mean(values)) if len(values) else np.nan
    lower = upper = np.nan
    if len(values) > 1 and np.isfinite(values).all():
        found = seed_interval(np.asarray(values), level)
        lower, upper = found.lower, found.upper
    return {name: mean, f"{name}_lower": lower, f"{name}_upper": upper}


def student_p(values: Sequence[float]) -> float:
    """The p-value of a mean other than 0, and NaN if a value is not finite.

    It is 1 for a single value, and if all are 0.
    """
    if not np.isfinite(values).all():
        return np.nan
    if len(values) < 2 or not np.any(values):
        return 1.0
    return float(stats.ttest_1samp(values, 0.0).pvalue)


def holm_where_tested(p_values: Sequence[float]) -> np.ndarray:
    """Holm's correction over the p-values that are not NaN, float [n]; the others stay NaN."""
    corrected = np.array(p_values, dtype=np.float64)
    tested = ~np.isnan(corrected)
    corrected[tested] = holm(corrected[tested].tolist())
    return corrected
