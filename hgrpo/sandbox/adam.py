"""Adam and the gradient's clip for each seed by itself."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# As in torch.nn.utils.clip_grad_norm_.
_CLIP_EPSILON = 1e-6


def clip_rows(gradients: Tensor, largest: float) -> tuple[Tensor, Tensor]:
    """Scale each row of `gradients` [S, P] to a norm of at most `largest`.

    Returns the scaled rows, and the norms [S] before.
    """
    norms = gradients.norm(dim=1)
    scale = (largest / (norms + _CLIP_EPSILON)).clamp(max=1.0)
    return gradients * scale.unsqueeze(1), norms


class Adam:
    """Kingma and Ba 2015, "Adam: A Method for Stochastic Optimization",
    https://arxiv.org/abs/1412.6980, on weights [S, P], which it changes in place.

    Adam treats every number by itself, so PyTorch's, in one pass over the rows, is the Adam of each
    seed. Decay rates are PyTorch's defaults. A seed that has stopped must not start again: its
    moments move on.
    """

    def __init__(self, weights: Tensor, lr: float):
        self.weights = weights
        self.optimiser = torch.optim.Adam([weights], lr, fused=True)

    @torch.no_grad()
    def step(self, gradients: Tensor, active: Tensor) -> None:
        """Take one step; the weights of seeds that are not `active`, bool [S], stay as they are."""
        stopped = ~active
        held = self.weights[stopped]
        self.weights.grad = gradients
        self.optimiser.step()
        self.weights.grad = None
        self.weights[stopped] = held

    def state(self) -> dict[str, Any]:
        """What an uninterrupted run carries to its next step; the weights are not part of it."""
        return copy.deepcopy(self.optimiser.state_dict())

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; the caller restores the weights, in place."""
        self.optimiser.load_state_dict(copy.deepcopy(dict(state)))
