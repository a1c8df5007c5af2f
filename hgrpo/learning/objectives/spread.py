"""How far a distribution over actions is spread, [..., V] -> [...]."""

import torch
from torch import Tensor


def entropy_of(probabilities: Tensor) -> Tensor:
    """-sum p log p, in nats."""
    return torch.special.entr(probabilities).sum(-1)


def collision_probability(logprobs: Tensor) -> Tensor:
    """sum p^2, the chance that two draws are the same action; without a gradient.

    As a baseline it is the original sandbox's own: the expected reward of an action, if the right
    one were itself a draw from the policy.
    """
    return logprobs.detach().exp().square().sum(-1)
