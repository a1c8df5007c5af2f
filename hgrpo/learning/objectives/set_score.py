"""What a set of answers is worth if the weighting of its two objectives is not known yet.

An answer has a vector of rewards, r. A set is worth E_w[max_m w . r_m]: somebody who comes with
weights w picks the best of its M answers.
"""

import torch
from torch import Tensor

# Sets of equal worth must be equal in a comparison of a group, whatever their sums' rounding.
_DECIMALS = 9


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
