"""Imitation of somebody else's rollouts, where tokens that surprise too much count less.

See "Pedagogical RL", https://noahziems.com/pedagogical-rl.
"""

import torch
from torch import Tensor

from hgrpo.learning.objectives.shapes import check_shapes

_FLOOR = 1e-8


def surprisal_gates(logprobs: Tensor, kappa: float, gamma: float) -> Tensor:
    """sigmoid(kappa (log p - gamma)), without a gradient: near 1 for tokens likelier than e^gamma.

    The policy moves while it imitates, so the gates belong to its current log-probs.
    """
    return torch.sigmoid(kappa * (logprobs.detach() - gamma))


def weighted_imitation(logprobs: Tensor, weights: Tensor) -> Tensor:
    """-sum w log p / sum w over the tokens of the last axis; equal weights give the plain loss."""
    check_shapes(logprobs, weights)
    return -(weights * logprobs).sum(-1) / weights.sum(-1).clamp(min=_FLOOR)
