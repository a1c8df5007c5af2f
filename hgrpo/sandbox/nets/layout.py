"""The net `MLP`, and functions to store and initialise a net's tensors in one flat vector."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from hgrpo.sandbox.draws import generator

Start = Literal["normal", "fan_in", "xavier", "zeros", "ones"]


@dataclass(frozen=True)
class Part:
    """One tensor of a net: its name, its shape without the seed axis, and its initialisation.

    `fan_in` draws uniformly from +-1 / sqrt(inputs), PyTorch's default for linear layers. `xavier`
    draws uniformly from +-sqrt(6 / (inputs + outputs)).
    """

    name: str
    shape: tuple[int, ...]
    start: Start
    inputs: int = 0

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def draw(self, numbers: np.random.Generator) -> np.ndarray:
        """Draw the initial values of this tensor for one seed."""
        if self.start == "normal":
            return numbers.standard_normal(self.shape)
        if self.start in ("zeros", "ones"):
            return np.full(self.shape, float(self.start == "ones"))
        bound = self.inputs**-0.5 if self.start == "fan_in" else math.sqrt(6 / sum(self.shape))
        return numbers.uniform(-bound, bound, self.shape)


def draw_weights(parts: Sequence[Part], seeds: Sequence[int], name: str) -> Tensor:
    """Draw the initial weights [S, P] of the net `name`. A row depends only on its own seed."""
    rows = []
    for seed in seeds:
        numbers = generator(seed, name)
        rows.append(np.concatenate([part.draw(numbers).ravel() for part in parts]))
    return torch.as_tensor(np.stack(rows), dtype=torch.float32)


def unpack(parts: Sequence[Part], weights: Tensor) -> Mapping[str, Tensor]:
    """The net's tensors [S, *shape] as views of `weights` [S, P]."""
    pieces = weights.split([part.size for part in parts], 1)
    return {
        part.name: piece.unflatten(1, part.shape) for part, piece in zip(parts, pieces, strict=True)
    }


def linear_parts(name: str, inputs: int, outputs: int) -> tuple[Part, Part]:
    """Matrix [inputs, outputs] and bias of a linear layer, with PyTorch's initialisation."""
    return (
        Part(f"{name}.matrix", (inputs, outputs), "fan_in", inputs),
        Part(f"{name}.bias", (outputs,), "fan_in", inputs),
    )


def linear(tensors: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Apply each seed's linear layer to x [S, R, inputs]; the result is [S, R, outputs]."""
    return torch.bmm(x, tensors[f"{name}.matrix"]).add_(tensors[f"{name}.bias"].unsqueeze(1))


@dataclass(frozen=True)
class MLP:
    """A multilayer perceptron with two hidden layers, evaluated for many seeds at once."""

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
        return draw_weights(self.parts, seeds, name)

    def logits(self, weights: Tensor, features: Tensor) -> Tensor:
        """Logits [S, R, outputs] of `features` [S, R, F]."""
        tensors = unpack(self.parts, weights)
        hidden = torch.relu(linear(tensors, "first", features))
        hidden = torch.relu(linear(tensors, "second", hidden))
        return linear(tensors, "head", hidden)
