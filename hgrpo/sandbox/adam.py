"""Adam and the gradient's clip for each seed by itself."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim.adam import adam

_DECAY, _SQUARE_DECAY, _EPSILON = 0.9, 0.999, 1e-8
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
    https://arxiv.org/abs/1412.6980, for weights [S, P]; decay rates are PyTorch's defaults.

    Adam treats every number by itself, so one fused pass over all rows is the Adam of each seed. A
    seed that has stopped must not start again: its moments move on.
    """

    def __init__(self, weights: Tensor, lr: float):
        self.lr = lr
        self.mean = torch.zeros_like(weights)
        self.square = torch.zeros_like(weights)
        self.steps = torch.zeros(())

    @torch.no_grad()
    def step(self, weights: Tensor, gradients: Tensor, active: Tensor) -> None:
        """Change `weights` in place; seeds that are not `active`, bool [S], stay as they are."""
        stopped = ~active
        held = weights[stopped]
        adam(
            *([weights], [gradients], [self.mean], [self.square], [], [self.steps]),
            fused=True,
            amsgrad=False,
            beta1=_DECAY,
            beta2=_SQUARE_DECAY,
            lr=self.lr,
            weight_decay=0.0,
            eps=_EPSILON,
            maximize=False,
        )
        weights[stopped] = held

    def state(self) -> dict[str, Tensor]:
        """What an uninterrupted run carries to its next step."""
        given = {"mean": self.mean, "square": self.square, "steps": self.steps}
        return {name: value.clone() for name, value in given.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state."""
        self.mean, self.square, self.steps = (
            state[name].clone() for name in ("mean", "square", "steps")
        )
