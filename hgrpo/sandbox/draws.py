"""Uniform draws for stacked seeds, from named random streams (seed, purpose, step).

A draw does not depend on earlier draws. Arms with the same seed therefore have the same data and
initial weights, and evaluations do not affect training.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from hgrpo.games import streams

Purpose = Literal[
    "init", "data", "action", "candidate", "weight", "noise", "screen", "replay", "evaluation"
]
# Random numbers are clamped to this value, because float32 rounds larger values to 1.
_BELOW_ONE = 1.0 - 2.0**-24


def generator(seed: int, *name: object) -> np.random.Generator:
    """NumPy generator for the initial weights of one seed; `name` is the name of the net."""
    return streams.generator("sandbox", seed, "init", *name)


def uniform(
    seeds: Sequence[int], purpose: Purpose, name: Sequence[object], shape: Sequence[int]
) -> Tensor:
    """Uniform draws in [0, 1), float32 [S, *shape].

    A stream's first draws are the same for every shape.

    Args:
        name: additional parts of the stream's name, such as the step.
    """
    count = int(np.prod(shape))
    keys = np.array([streams.key("sandbox", seed, purpose, *name) for seed in seeds], np.uint64)
    values = streams.uniform(np.repeat(keys, count), np.tile(np.arange(count), len(keys)))
    below = torch.as_tensor(values, dtype=torch.float32).clamp(max=_BELOW_ONE)
    return below.reshape(len(keys), *shape)


def integers(
    seeds: Sequence[int],
    purpose: Purpose,
    name: Sequence[object],
    shape: Sequence[int],
    high: int,
) -> Tensor:
    """Uniform integers in [0, high), int64 [S, *shape]."""
    return (uniform(seeds, purpose, name, shape) * high).long().clamp(max=high - 1)


def pick(logprobs: Tensor, draws: Tensor) -> Tensor:
    """Sample one action per draw by inverse transform sampling, int64 with the shape of `draws`.

    Args:
        logprobs: log-probs of V actions, [..., V]; the axes before V are broadcast with `draws`.
        draws: [...] in [0, 1).
    """
    passed = logprobs.exp().cumsum(-1) <= draws.unsqueeze(-1)
    return passed.sum(-1).clamp(max=logprobs.shape[-1] - 1)
