"""The delightful policy gradient: a gate on advantage times surprisal.

Osband 2026, "Delightful Policy Gradient", https://arxiv.org/abs/2603.14608.
"""

import torch
from torch import Tensor

from hgrpo.learning.objectives.shapes import check_shapes


def delight(logprobs: Tensor, advantages: Tensor) -> Tensor:
    """A s with the surprisal s = -log p, in nats; without a gradient."""
    check_shapes(logprobs, advantages)
    return (advantages * -logprobs).detach()


def dg_gates(logprobs: Tensor, advantages: Tensor, eta: float) -> Tensor:
    """sigmoid(A s / eta): near 1 for rare successes, near 0 for rare failures, 1/2 at s = 0."""
    return torch.sigmoid(delight(logprobs, advantages) / eta)


def dg_weights(logprobs: Tensor, advantages: Tensor, eta: float) -> Tensor:
    """The gate times A."""
    return dg_gates(logprobs, advantages, eta) * advantages.detach()
