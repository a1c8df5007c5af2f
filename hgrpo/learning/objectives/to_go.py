"""Rewards to go, from the correctness of single tokens."""

from torch import Tensor


def mean_to_go(correct: Tensor, scored: Tensor) -> Tensor:
    """Mean of `correct` over the scored positions from t on, in the shape of `correct`.

    Where no scored position is left the mean is 0. With all positions scored this is the plain
    mean of the remaining tokens.

    Args:
        correct: float [..., T], 1 for a right token.
        scored: float [T], 1 where the reward reads the position.
    """
    right = (correct * scored).flip(-1).cumsum(-1).flip(-1)
    return right / scored.flip(-1).cumsum(-1).flip(-1).clamp(min=1.0)
