"""What a set of answers is worth if the weighting of its two objectives is not known yet.

And how much of that each slot gets.

An answer has a vector of rewards, r. A set is worth E_w[max_m w . r_m]: somebody who comes with
weights w picks the best of its M answers.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from hgrpo.learning.objectives.group import centred

# Sets of equal worth must be equal in a comparison of a group, whatever their sums' rounding.
_DECIMALS = 9
_FLOOR = 1e-8


def best_scalar(vectors: Tensor, weights: Tensor) -> Tensor:
    """max_m w . r_m, float [...], for one weighting.

    Args:
        vectors: float [..., M, D].
        weights: float [D].
    """
    return (vectors * weights).sum(-1).amax(-1)


def drawn_set_score(vectors: Tensor, weights: Tensor) -> Tensor:
    """The mean of max_m w . r_m over W drawn weightings, float [...].

    Args:
        vectors: float [..., M, D].
        weights: float [..., W, D]; leading axes are broadcast to those of `vectors`.
    """
    return (vectors @ weights.transpose(-1, -2)).amax(-2).mean(-1)


def crossings(vectors: Tensor) -> Tensor:
    """All t in [0, 1] at which two answers are worth the same, sorted, and 0 and 1; [..., C].

    With weights (t, 1 - t) an answer is worth a line in t. Parallel lines give 0 once more.

    Args:
        vectors: float [..., M, 2].
    """
    count = vectors.shape[-2]
    slopes, starts = vectors[..., 0] - vectors[..., 1], vectors[..., 1]
    one, other = torch.triu_indices(count, count, offset=1)
    slower = slopes[..., one] - slopes[..., other]
    ahead = starts[..., other] - starts[..., one]
    crossed = torch.where(slower == 0, 0.0, ahead / slower.where(slower != 0, 1.0))
    ends = vectors.new_tensor([0.0, 1.0]).expand(*vectors.shape[:-2], 2)
    return torch.cat([crossed.clamp(0.0, 1.0), ends], -1).sort(-1).values


def envelope(vectors: Tensor, places: Tensor) -> Tensor:
    """max_m w . r_m for the weights (t, 1 - t) of each t in `places` [..., C]; [..., C]."""
    high, low = vectors[..., 0].unsqueeze(-1), vectors[..., 1].unsqueeze(-1)
    place = places.unsqueeze(-2)
    return (place * high + (1.0 - place) * low).amax(-2)


def exact_set_score(vectors: Tensor) -> Tensor:
    """E_w[max_m w . r_m] for two objectives and w = (t, 1 - t), t uniform, float [...].

    That is Dirichlet(1, 1). The maximum is piecewise linear in t, so the trapezoids between
    crossings are the integral. The result is rounded to 1e-9.

    Args:
        vectors: float [..., M, 2].
    """
    exact = vectors.double()
    places = crossings(exact)
    return (
        torch.trapezoid(envelope(exact, places), places, dim=-1).round(decimals=_DECIMALS).float()
    )


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
