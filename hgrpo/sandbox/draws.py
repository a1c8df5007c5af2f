"""Uniform draws for stacked seeds, from streams that are named by seed and purpose.

A draw depends on its seed, its purpose and its step, never on earlier draws. Arms of equal
seeds therefore share data and first weights, and an evaluation draws nothing from training.
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
# The largest float32 below 1: rounding must not turn a draw into 1.
_BELOW_ONE = 1.0 - 2.0**-24


def generator(seed: int, *name: object) -> np.random.Generator:
    """A NumPy generator for one seed's first weights; `name` is the net's."""
    return streams.generator("sandbox", seed, "init", *name)


def uniform(
    seeds: Sequence[int], purpose: Purpose, name: Sequence[object], shape: Sequence[int]
) -> Tensor:
    """Draws in [0, 1), float32 [S, *shape]; the first draws of a longer shape are the same.

    Args:
        name: further parts of the stream's name, such as the step.
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
    """An action for each draw, int64 in the shape of `draws`, by inversion.

    Args:
        logprobs: [..., V], the log-probs of V actions; the other axes are broadcast.
        draws: [...] in [0, 1).
    """
    passed = logprobs.exp().cumsum(-1) <= draws.unsqueeze(-1)
    return passed.sum(-1).clamp(max=logprobs.shape[-1] - 1)
