"""A policy that learns: its weights, its Adam, and the one way in which it is updated."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from hgrpo.errors import TrainingError
from hgrpo.sandbox.adam import Adam, clip_rows
from hgrpo.sandbox.seen import Term


class Learner:
    """Weights [S, P] of stacked seeds; every seed gets its own gradient, clip and moments."""

    def __init__(self, weights: Tensor, lr: float, largest_norm: float, seeds: Sequence[int]):
        self.weights = weights
        self.adam = Adam(weights, lr)
        self.largest_norm = largest_norm
        self.seeds = seeds
        self.updates = 0

    def update(self, loss: Callable[[Tensor], Term], where: str) -> tuple[Term, Tensor]:
        """Take one step down the loss of the current weights.

        Returns:
            the term without its gradient's graph, and the gradient [S, P] before the clip.

        Raises:
            TrainingError: a loss or a gradient is not finite; the message begins with `where`.
        """
        weights = self.weights.detach().requires_grad_()
        term = loss(weights)
        (gradient,) = torch.autograd.grad(term.loss.sum(), weights)
        clipped, norms = clip_rows(gradient, self.largest_norm)
        wrong = ~(term.loss.isfinite() & norms.isfinite())
        if bool(wrong.any()):
            seed = self.seeds[int(wrong.nonzero()[0])]
            raise TrainingError(
                f"{where}, seed {seed}: the loss or its gradient is not finite; lower lr"
            )
        self.adam.step(self.weights, clipped, torch.ones_like(wrong))
        self.updates += 1
        return Term(term.loss.detach(), term.metrics), gradient

    def state(self) -> dict[str, Any]:
        """What an uninterrupted run carries to its next step."""
        return {"weights": self.weights.clone(), "adam": self.adam.state(), "updates": self.updates}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.weights, self.updates = state["weights"].clone(), state["updates"]
        self.adam.load_state(state["adam"])
