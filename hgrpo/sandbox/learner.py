"""Trains the weights of a policy, with a separate Adam state and gradient clipping per seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hgrpo.errors import TrainingError
from hgrpo.formulas.batch import Term

# As in torch.nn.utils.clip_grad_norm_.
_CLIP_EPSILON = 1e-6


def clip_rows(gradients: Tensor, largest: float) -> tuple[Tensor, Tensor]:
    """Clip the norm of each row of `gradients` [S, P] to `largest`.

    Returns the clipped rows and the original norms [S].
    """
    norms = gradients.norm(dim=1)
    scale = (largest / (norms + _CLIP_EPSILON)).clamp(max=1.0)
    return gradients * scale.unsqueeze(1), norms


class Adam:
    """Adam for the weights [S, P] of stacked seeds, with PyTorch's default hyperparameters.

    See Kingma and Ba 2015, "Adam: A Method for Stochastic Optimization",
    https://arxiv.org/abs/1412.6980. Adam is elementwise, so one fused pass updates all seeds. An
    inactive seed's moments are still updated, so the seed must not become active again.
    """

    def __init__(self, weights: Tensor, lr: float):
        self._weights, self._adam = weights, torch.optim.Adam([weights], lr, fused=True)

    @torch.no_grad()
    def step(self, gradients: Tensor, active: Tensor) -> None:
        """Update the weights of the active seeds in place; `active` is bool [S]."""
        weights, stopped = self._weights, ~active
        held = weights[stopped]
        weights.grad = gradients
        self._adam.step()
        weights[stopped] = held


@dataclass(frozen=True)
class Update:
    """Result of an update: detached term, and gradient [S, P] and its norms [S] before clipping."""

    term: Term
    gradient: Tensor
    norms: Tensor


class Learner:
    """Weights [S, P] of S runs with different seeds, with separate clipping and Adam moments.

    `updates` counts the updates of each seed, int64 [S].
    """

    def __init__(self, weights: Tensor, lr: float, largest_norm: float, seeds: Sequence[int]):
        self.weights = weights
        self.adam = Adam(weights, lr)
        self.largest_norm = largest_norm
        self.seeds = seeds
        self.updates = torch.zeros(len(seeds), dtype=torch.int64)
        self._leaf: Tensor | None = None

    @property
    def leaf(self) -> Tensor:
        """The current weights, as a tensor that requires gradients.

        The next update differentiates its loss with respect to this tensor, so the loss may reuse
        results that were computed from it.
        """
        if self._leaf is None:
            self._leaf = self.weights.detach().requires_grad_()
        return self._leaf

    def update(
        self, loss: Callable[[Tensor], Term], where: str, active: Tensor | None = None
    ) -> Update:
        """Take one optimizer step on the loss at the current weights.

        Args:
            active: bool [S], the seeds to update; None for all seeds.

        Raises:
            TrainingError: a loss or a gradient is not finite; the message begins with `where`.
        """
        active = torch.ones(len(self.seeds), dtype=torch.bool) if active is None else active
        term = loss(self.leaf)
        (gradient,) = torch.autograd.grad(term.loss.sum(), self.leaf)
        self._leaf = None
        clipped, norms = clip_rows(gradient, self.largest_norm)
        wrong = ~(term.loss.isfinite() & norms.isfinite()) & active
        if bool(wrong.any()):
            seed = self.seeds[int(wrong.nonzero()[0])]
            raise TrainingError(
                f"{where}, seed {seed}: the loss or its gradient is not finite; reduce `lr`"
            )
        self.adam.step(clipped, active)
        self.updates = self.updates + active
        return Update(Term(term.loss.detach(), term.metrics), gradient, norms)
