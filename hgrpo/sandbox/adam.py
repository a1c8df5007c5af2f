"""Adam with moments, steps and gradient clip of each seed by itself."""

import torch
from torch import Tensor

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
    """

    def __init__(self, weights: Tensor, lr: float):
        self.lr = lr
        self.mean = torch.zeros_like(weights)
        self.square = torch.zeros_like(weights)
        self.steps = torch.zeros(len(weights), 1, dtype=torch.float64)

    @torch.no_grad()
    def step(self, weights: Tensor, gradients: Tensor, active: Tensor) -> None:
        """Change `weights` in place; seeds that are not `active`, bool [S], stay as they are."""
        on = active.unsqueeze(1)
        self.steps += on
        mean = self.mean.lerp(gradients, 1 - _DECAY)
        square = (self.square * _SQUARE_DECAY).addcmul(
            gradients, gradients, value=1 - _SQUARE_DECAY
        )
        counts = self.steps.clamp(min=1.0)
        first, second = 1 - _DECAY**counts, 1 - _SQUARE_DECAY**counts
        size = (square.sqrt() / second.sqrt().float()).add_(_EPSILON)
        change = mean / size * (-self.lr / first).float()
        if bool(active.all()):
            weights += change
            self.mean, self.square = mean, square
            return
        weights += torch.where(on, change, 0.0)
        self.mean = torch.where(on, mean, self.mean)
        self.square = torch.where(on, square, self.square)

    def state(self) -> dict[str, Tensor]:
        """What an uninterrupted run carries to its next step."""
        return {"mean": self.mean, "square": self.square, "steps": self.steps.clone()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.mean, self.square, self.steps = state["mean"], state["square"], state["steps"].clone()
