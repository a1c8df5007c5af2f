"""How often a group of rollouts has anything to compare."""

import torch
from torch import Tensor


def mixed_rate(success: Tensor, size: int) -> Tensor:
    """1 - q^K - (1 - q)^K: the probability that K rollouts do not all succeed or all fail.

    Args:
        success: float, the probability q of a success.
        size: K.
    """
    return 1.0 - success**size - (1.0 - success) ** size


def mixed_reward_rate(chances: Tensor, rewards: Tensor, size: int) -> Tensor:
    """1 - sum_r P(R = r)^K: the probability that K rollouts do not all earn the same, [...].

    With rewards 0 and 1 this is `mixed_rate`.

    Args:
        chances: float [..., O], the probabilities of all outputs; they add up to 1.
        rewards: float [..., O], what each output earns.
        size: K.
    """
    levels = [(chances * (rewards == level)).sum(-1) for level in rewards.unique()]
    return 1.0 - torch.stack(levels).pow(size).sum(0)
