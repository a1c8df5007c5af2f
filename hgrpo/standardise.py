"""Standardise advantages to z-scores."""

import numpy as np


def standardise(values: np.ndarray, floor: float) -> np.ndarray:
    """Return (x - mean) / max(population standard deviation, floor) for every x in `values`.

    If all values are equal, the result is exactly zero, even if the computed mean is not exact.
    """
    if values.size == 0 or np.all(values == values.flat[0]):
        return np.zeros_like(values, dtype=np.float64)
    return (values - values.mean()) / max(values.std(), floor)
