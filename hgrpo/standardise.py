"""Standardise advantages to z-scores."""

import numpy as np


def standardise(values: np.ndarray, floor: float) -> np.ndarray:
    """(x - mean) / max(population standard deviation, floor), in the shape of `values`.

    If all values are equal, the result is exactly zero, even if their mean is rounded.
    """
    if values.size == 0 or np.all(values == values.flat[0]):
        return np.zeros_like(values, dtype=np.float64)
    return (values - values.mean()) / max(values.std(), floor)
