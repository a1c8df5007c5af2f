"""Estimates the true advantages of a trajectory's turns, from continuations before each turn.

    V_t = mean return of the continuations that start before turn t
    V_T = return of the trajectory itself
    A_t = V_{t+1} - V_t

V_T has no error, because there is no reward after the last turn. A_t is an unbiased estimate of the
turn's advantage under the policy that plays the continuations. Source: Kazemnejad et al. 2024,
"VinePPO: Refining Credit Assignment in RL Training of LLMs", https://arxiv.org/abs/2410.01679, with
turns as steps.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class TurnTruth:
    """Estimates for the T turns of a trajectory; every field is float64 [T], in units of return.

    The errors of A_t and A_{t+1} have the covariance -se_after[t]**2, because V_{t+1} is added in
    A_t and subtracted in A_{t+1}. The errors of turns that are not adjacent are independent.

    Attributes:
        value_before, value_after: V_t and V_{t+1}.
        se_before, se_after: standard errors of V_t and V_{t+1}; the last `se_after` is 0.
        advantage, advantage_se: A_t and its standard error.
        advantage_first, advantage_second: A_t estimated from the first and from the second half of
            the continuations; the errors of these two estimates are independent.
    """

    value_before: np.ndarray
    se_before: np.ndarray
    value_after: np.ndarray
    se_after: np.ndarray
    advantage: np.ndarray
    advantage_se: np.ndarray
    advantage_first: np.ndarray
    advantage_second: np.ndarray


def turn_truth(returns: np.ndarray, final: float) -> TurnTruth:
    """Estimate the true advantage of each turn.

    Args:
        returns: float64 [T, n], returns of the n continuations that start before each turn.
        final: the trajectory's own return.

    Raises:
        ValueError: there are fewer than two continuations, so their noise cannot be estimated.
    """
    each = returns.shape[1]
    if each < 2:
        raise ValueError(f"expected at least 2 continuations per turn, got {each}")
    values = returns.mean(axis=1)
    errors = returns.std(axis=1, ddof=1) / np.sqrt(each)
    after, errors_after = np.append(values[1:], final), np.append(errors[1:], 0.0)
    half = each // 2
    return TurnTruth(
        value_before=values,
        se_before=errors,
        value_after=after,
        se_after=errors_after,
        advantage=np.diff(values, append=final),
        advantage_se=np.hypot(errors, errors_after),
        advantage_first=_advantages(returns[:, :half], final),
        advantage_second=_advantages(returns[:, half:], final),
    )


def _advantages(returns: np.ndarray, final: float) -> np.ndarray:
    return np.diff(returns.mean(axis=1), append=final)
