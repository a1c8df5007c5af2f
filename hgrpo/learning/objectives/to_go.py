"""Rewards to go, from the correctness of single tokens. The rule is the original sandbox's own."""

from torch import Tensor

from hgrpo.learning.objectives.sampled_kl import rewards_to_go


def mean_to_go(correct: Tensor, scored: Tensor) -> Tensor:
    """Mean of `correct` over the scored positions from t on, in the shape of `correct`.

    Where no scored position is left the mean is 0. With all positions scored this is the plain
    mean of the remaining tokens.

    Args:
        correct: float [..., T], 1 for a right token.
        scored: float [T], 1 where the reward reads the position.
    """
    return rewards_to_go(correct * scored) / rewards_to_go(scored).clamp(min=1.0)
