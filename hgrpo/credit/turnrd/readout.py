"""How TurnRD's output becomes credit. The weights of its losses play no part here."""

import numpy as np


def alpha_return(alpha: np.ndarray, env_return: float) -> np.ndarray:
    """Shares of the return: alpha_t R, [T]; sums to R."""
    return alpha * env_return


def projected_value(values: np.ndarray, env_return: float, clip: float) -> np.ndarray:
    """Values clipped to +-clip and shifted by one constant so that they sum to R, [T]."""
    clipped = np.clip(values, -clip, clip)
    return clipped - (clipped.sum() - env_return) / len(values)


def value_baseline(alpha: np.ndarray, values: np.ndarray, env_return: float) -> np.ndarray:
    """Share of the return minus value: alpha_t R - V_t, [T]."""
    return alpha * env_return - values


def uniform(length: int, env_return: float) -> np.ndarray:
    """Equal shares R / T, [T]: the credit while there is no fitted model."""
    return np.full(length, env_return / max(1, length))
