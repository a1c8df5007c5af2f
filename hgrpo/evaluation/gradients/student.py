"""Student's interval of a mean over seeds, as columns of a table."""

from collections.abc import Sequence

import numpy as np

from hgrpo.evaluation.over_seeds import seed_interval


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
