"""How TurnRD's output becomes credit; none of these depends on the weights of its losses."""

import numpy as np


def alpha_return(alpha: np.ndarray, value: float) -> np.ndarray:
    """alpha_t R, [T]; sums to the return R."""
    return alpha * value


def projected_value(values: np.ndarray, value: float, clip: float) -> np.ndarray:
    """V_t within +-clip, moved by one constant so that the credit sums to the return, [T]."""
    clipped = np.clip(values, -clip, clip)
    return clipped - (clipped.sum() - value) / len(values)


def value_baseline(alpha: np.ndarray, values: np.ndarray, value: float) -> np.ndarray:
    """alpha_t R - V_t, [T]: the turn's share of the return against what was expected of it."""
    return alpha * value - values


def uniform(length: int, value: float) -> np.ndarray:
    """R / T, [T]: what is given before there is a fitted model."""
    return np.full(length, value / max(1, length))
