"""A policy that learns: its weights, its Adam, and the one way in which it is updated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hgrpo.errors import TrainingError
from hgrpo.sandbox.adam import Adam, clip_rows
from hgrpo.sandbox.seen import Term


@dataclass(frozen=True)
class Update:
    """The term of an update without its gradient's graph, and before the clip the gradient [S, P]
    and its norms [S].
    """

    term: Term
    gradient: Tensor
    norms: Tensor


class Learner:
    """Weights [S, P] of stacked seeds; every seed gets its own gradient, clip and moments.

    `updates` counts those of each seed, int64 [S].
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
        """The current weights as the next update takes them: with a gradient.

        The loss of that update may use what was computed from this tensor before.
        """
        if self._leaf is None:
            self._leaf = self.weights.detach().requires_grad_()
        return self._leaf

    def update(
        self, loss: Callable[[Tensor], Term], where: str, active: Tensor | None = None
    ) -> Update:
        """Take one step down the loss of the current weights.

        Args:
            active: bool [S]; weights of other seeds stay as they are. None: all are.

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
                f"{where}, seed {seed}: the loss or its gradient is not finite; lower lr"
            )
        self.adam.step(self.weights, clipped, active)
        self.updates = self.updates + active
        return Update(Term(term.loss.detach(), term.metrics), gradient, norms)

    def state(self) -> dict[str, Any]:
        """What an uninterrupted run carries to its next step."""
        return {"weights": self.weights.clone(), "adam": self.adam.state(), "updates": self.updates}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._leaf = None
        self.weights, self.updates = state["weights"].clone(), state["updates"]
        self.adam.load_state(state["adam"])
