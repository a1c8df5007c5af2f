"""Metrics of a set of answers with two rewards, whose weights w are unknown.

A set is given by its M reward vectors, float [..., M, 2]. `available` [..., V, 2] contains the
reward vectors of all possible answers. The value of a set depends only on which of the V answers it
contains, so expectations over sets of independent answers are sums over the 2^V subsets.
"""

import torch
from torch import Tensor

from hgrpo.formulas.set_score import crossings, envelope


def hypervolume(vectors: Tensor) -> Tensor:
    """Area above (0, 0) dominated by the reward vectors of the set.

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
    """Maximum regret over w: best w . r of all answers, minus the best in the set, float [...].

    The difference is piecewise linear in w. Its slope only changes at weights where two answers
    tie, so the maximum is at one of these weights or at an end of the range.
    """
    places = crossings(available)
    return (envelope(available, places) - envelope(vectors, places)).amax(-1)


def on_front(available: Tensor) -> Tensor:
    """Whether an answer is Pareto optimal; bool [..., V]."""
    one, other = available.unsqueeze(-2), available.unsqueeze(-3)
    beaten = (other >= one).all(-1) & (other > one).any(-1)
    return ~beaten.any(-1)


def coverage(vectors: Tensor, available: Tensor) -> Tensor:
    """Share of all Pareto-optimal answers that are in the set, float [...]."""
    held = (available.unsqueeze(-2) == vectors.unsqueeze(-3)).all(-1).any(-1)
    front = on_front(available)
    return (held & front).float().sum(-1) / front.float().sum(-1)


def distances(vectors: Tensor) -> Tensor:
    """Pairwise L1 distances between the rewards of answers, float [..., V, V]."""
    return (vectors.unsqueeze(-2) - vectors.unsqueeze(-3)).abs().sum(-1)


def members(actions: int) -> Tensor:
    """Whether each subset contains each action, bool [2^V, V].

    Subset u contains action a if bit a of u is set.
    """
    numbers = torch.arange(2**actions).unsqueeze(1)
    return (numbers >> torch.arange(actions)) % 2 == 1


def subset_chances(chances: Tensor, counts: Tensor) -> Tensor:
    """Probability that the actions of a subset, and no other actions, occur; float64 [..., 2^V].

    The probability that no actions outside a subset occur is a product over slots. The result is
    computed from these probabilities by Moebius inversion over the lattice of subsets.

    Args:
        chances: probabilities [..., M, V] of each slot's actions.
        counts: number of answers per slot, int64 [M].
    """
    actions = chances.shape[-1]
    inside = chances.double() @ members(actions).double().T
    chances_of_sets = (inside ** counts.unsqueeze(-1)).prod(-2)
    for action in range(actions):
        below, above = chances_of_sets.unflatten(-1, (-1, 2, 2**action)).unbind(-2)
        chances_of_sets = torch.stack([below, above - below], -2).flatten(-3)
    return chances_of_sets


def subset_vectors(vectors: Tensor) -> Tensor:
    """The reward vectors of each non-empty subset, as a set of V answers, [..., 2^V - 1, V, 2].

    Actions outside the subset are replaced by an action in the subset. Such duplicates do not
    change the value of a set.

    Args:
        vectors: rewards of the V actions, float [..., V, 2].
    """
    held = members(vectors.shape[-2])[1:]
    actions = torch.arange(held.shape[1]).expand_as(held)
    return vectors[..., torch.where(held, actions, held.float().argmax(1, keepdim=True)), :]
