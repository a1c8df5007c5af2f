"""How good a set of answers is for somebody whose weights are not known yet.

Sets are float [..., M, 2]; `available` [..., V, 2] holds the rewards of all answers there are.
"""

import torch
from torch import Tensor

from hgrpo.learning.objectives.set_score import crossings, envelope


def hypervolume(vectors: Tensor) -> Tensor:
    """Area of the reward vectors that an answer of the set reaches in both parts, above (0, 0).

    Zitzler and Thiele 1998, "Multiobjective Optimization Using Evolutionary Algorithms",
    https://doi.org/10.1007/BFb0056872.
    """
    order = vectors[..., 0].sort(-1, descending=True)
    heights = vectors[..., 1].gather(-1, order.indices).cummax(-1).values
    widths = order.values - torch.cat(
        [order.values[..., 1:], torch.zeros_like(order.values[..., :1])], -1
    )
    return (widths * heights).sum(-1)


def worst_regret(vectors: Tensor, available: Tensor) -> Tensor:
    """max over w of (best w . r there is - best w . r in the set); float [...].

    The difference is linear between crossings of all answers, so one of them has the maximum.
    """
    places = crossings(available)
    return (envelope(available, places) - envelope(vectors, places)).amax(-1)


def on_front(available: Tensor) -> Tensor:
    """Whether no other answer is as good in both rewards and better in one; bool [..., V]."""
    one, other = available.unsqueeze(-2), available.unsqueeze(-3)
    beaten = (other >= one).all(-1) & (other > one).any(-1)
    return ~beaten.any(-1)


def coverage(vectors: Tensor, available: Tensor) -> Tensor:
    """The share of the front's answers that are in the set, float [...]."""
    found = (available.unsqueeze(-2) == vectors.unsqueeze(-3)).all(-1).any(-1)
    front = on_front(available)
    return (found & front).float().sum(-1) / front.float().sum(-1)


def distances(vectors: Tensor) -> Tensor:
    """L1 distance of the rewards of each two answers, float [..., V, V]."""
    return (vectors.unsqueeze(-2) - vectors.unsqueeze(-3)).abs().sum(-1)
