"""Sums and means over the turns of each bucket."""

import numpy as np


def sums(values: np.ndarray, bucket: np.ndarray, size: int) -> np.ndarray:
    """Sum of values [N] in each bucket, float [size]; bucket is int [N] below `size`."""
    return np.bincount(bucket, weights=values, minlength=size)


def means(
    values: np.ndarray, bucket: np.ndarray, size: int, counted: np.ndarray, empty: float = np.nan
) -> np.ndarray:
    """Mean of counted values [N] in each bucket, float [size]; `empty` where there are none."""
    total = sums(np.where(counted, values, 0.0), bucket, size)
    number = sums(counted, bucket, size)
    return np.divide(total, number, out=np.full(size, empty), where=number > 0)
