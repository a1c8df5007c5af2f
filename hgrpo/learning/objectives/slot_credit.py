"""How the worth of a set is credited to its slots."""

from collections.abc import Callable

import torch
from torch import Tensor

from hgrpo.learning.objectives.group import centred

_FLOOR = 1e-8


def shared_credit(score: Callable[[Tensor], Tensor], vectors: Tensor) -> Tensor:
    """The worth of the whole set for each of its slots, float [..., M].

    Args:
        score: worth [...] of sets [..., M, D].
        vectors: float [..., M, D], the answers' rewards.
    """
    return score(vectors).unsqueeze(-1).expand(*vectors.shape[:-1])


def marginal_credit(score: Callable[[Tensor], Tensor], vectors: Tensor) -> Tensor:
    """What the set would lose without each slot, float [..., M]; needs M of at least 2.

    If slots are drawn independently, the rest of the set is a baseline that does not depend on the
    slot's answer: the gradient keeps its mean and loses the variance that other slots bring.
    Foerster et al. 2018, "Counterfactual Multi-Agent Policy Gradients",
    https://arxiv.org/abs/1705.08926, subtract such a baseline for each agent of a team.
    """
    count = vectors.shape[-2]
    rest = [[other for other in range(count) if other != slot] for slot in range(count)]
    without = [score(vectors[..., others, :]) for others in rest]
    return score(vectors).unsqueeze(-1) - torch.stack(without, -1)


def slot_advantages(credit: Tensor) -> Tensor:
    """Credit [..., K, M], less each slot's mean over the group, over the group's deviation.

    The deviation is that of all K M differences, so that a slot which matters little keeps a small
    advantage. For shared credit, and for M = 1, these are the z-scores of the group.
    """
    apart = centred(credit, -2)
    return apart / (apart.square().mean((-2, -1), keepdim=True).sqrt() + _FLOOR)
