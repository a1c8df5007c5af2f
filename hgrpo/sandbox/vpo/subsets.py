"""Exact expectations over sets of independently drawn answers, by listing subsets of actions.

What a set is worth depends only on which of the V actions occur in it, however many answers it has.
There are 2^V such subsets. Subset number u holds action a if bit a of u is set.
"""

import torch
from torch import Tensor


def members(actions: int) -> Tensor:
    """Whether each subset holds each action, bool [2^V, V]."""
    numbers = torch.arange(2**actions).unsqueeze(1)
    return (numbers >> torch.arange(actions)) % 2 == 1


def subset_chances(chances: Tensor, counts: Tensor) -> Tensor:
    """The probability that exactly the actions of each subset occur, float64 [..., 2^V].

    Args:
        chances: probabilities [..., M, V] of each slot's actions.
        counts: how often each slot answers, int64 [M].

    All answers lie within a subset with the product of the slots' probabilities of it. Moebius
    inversion over the lattice of subsets turns "within" into "exactly".
    """
    actions = chances.shape[-1]
    inside = chances.double() @ members(actions).double().T
    found = (inside ** counts.unsqueeze(-1)).prod(-2)
    for action in range(actions):
        below, above = found.unflatten(-1, (-1, 2, 2**action)).unbind(-2)
        found = torch.stack([below, above - below], -2).flatten(-3)
    return found


def subset_vectors(vectors: Tensor) -> Tensor:
    """Each subset but the empty one as a set of V answers, [..., 2^V - 1, V, 2].

    An answer that is not in the subset is replaced by one that is; a set with a duplicate is worth
    what it is worth without.

    Args:
        vectors: rewards of the V actions, float [..., V, 2].
    """
    held = members(vectors.shape[-2])[1:]
    own = torch.arange(held.shape[1]).expand_as(held)
    return vectors[..., torch.where(held, own, held.float().argmax(1, keepdim=True)), :]
