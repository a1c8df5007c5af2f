"""Student's interval of a mean over seeds."""

from collections.abc import Sequence

import numpy as np
from scipy import stats


def student(name: str, values: Sequence[float], level: float) -> dict[str, float]:
    """The mean under `name`, and its interval under <name>_lower and <name>_upper.

    The mean is NaN without values. The interval is NaN with fewer than two, and if one is not
    finite.
    """
    mean = float(np.mean(values)) if len(values) else np.nan
    lower = upper = np.nan
    if len(values) > 1 and np.isfinite(values).all():
        half = stats.sem(values) * stats.t.ppf((1 + level) / 2, len(values) - 1)
        lower, upper = mean - half, mean + half
    return {name: mean, f"{name}_lower": lower, f"{name}_upper": upper}
