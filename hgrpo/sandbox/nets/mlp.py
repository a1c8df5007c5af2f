"""A multilayer perceptron with two hidden layers of ReLU units."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hgrpo.sandbox.nets.layout import Part, draw_weights, linear, linear_parts, unpack


@dataclass(frozen=True)
class MLP:
    """Features -> hidden -> hidden -> outputs, for stacked seeds."""

    features: int
    hidden: int
    outputs: int

    @property
    def parts(self) -> tuple[Part, ...]:
        return (
            *linear_parts("first", self.features, self.hidden),
            *linear_parts("second", self.hidden, self.hidden),
            *linear_parts("head", self.hidden, self.outputs),
        )

    def init(self, seeds: Sequence[int], name: str = "policy") -> Tensor:
        """First weights [S, P]."""
        return draw_weights(self.parts, seeds, name)

    def logits(self, weights: Tensor, features: Tensor) -> Tensor:
        """[S, R, outputs] of R inputs a seed, `features` [S, R, F]."""
        tensors = unpack(self.parts, weights)
        hidden = torch.relu(linear(tensors, "first", features))
        hidden = torch.relu(linear(tensors, "second", hidden))
        return linear(tensors, "head", hidden)
