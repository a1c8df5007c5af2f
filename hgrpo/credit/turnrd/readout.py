"""Computes credit from TurnRD's output. The weights of the losses do not matter here."""

import numpy as np

from hgrpo.credit.turnrd.settings import Settings


def read_out(
    settings: Settings, alpha: np.ndarray, values: np.ndarray | None, env_return: float
) -> np.ndarray:
    """Credit [T] of a trajectory with return R, from its alpha [T] and values V [T], if any.

    `alpha_return`: alpha_t R, which sums to R. `projected_value`: values clipped to +-value_clip
    and shifted by one constant so that they sum to R. `value_baseline`: alpha_t R - V_t.
    """
    match settings.readout:
        case "alpha_return":
            return alpha * env_return
        case "projected_value":
            clipped = np.clip(values, -settings.value_clip, settings.value_clip)
            return clipped - (clipped.sum() - env_return) / len(values)
        case _:
            return alpha * env_return - values


def uniform(length: int, env_return: float) -> np.ndarray:
    """Equal shares R / T, [T]: the credit while there is no fitted model."""
    return np.full(length, env_return / max(1, length))
