"""The advantage of each turn, from the values before the turns."""

import numpy as np


def value_changes(values: np.ndarray, final: float) -> np.ndarray:
    """A_t = V_{t+1} - V_t, float64 [T].

    Args:
        values: V_0 to V_{T-1}, the values before the turns, float64 [T].
        final: V_T, which is the trajectory's return, because nothing is paid after the last turn.
    """
    return np.diff(values, append=final)
