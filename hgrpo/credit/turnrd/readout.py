"""How TurnRD's output becomes credit; none of these depends on the weights of its losses."""

import numpy as np


def alpha_return(alpha: np.ndarray, env_return: float) -> np.ndarray:
    """alpha_t R, [T]; sums to the return R."""
    return alpha * env_return


def projected_value(values: np.ndarray, env_return: float, clip: float) -> np.ndarray:
    """V_t within +-clip, moved by one constant so that the credit sums to the return, [T]."""
    clipped = np.clip(values, -clip, clip)
    return clipped - (clipped.sum() - env_return) / len(values)


def value_baseline(alpha: np.ndarray, values: np.ndarray, env_return: float) -> np.ndarray:
    """alpha_t R - V_t, [T]: the turn's share of the return against what was expected of it."""
    return alpha * env_return - values


def uniform(length: int, env_return: float) -> np.ndarray:
    """R / T, [T]: what is given before there is a fitted model."""
    return np.full(length, env_return / max(1, length))
