"""Which tokens a truncated divergence looks at, and how much two rankings share."""

from typing import Literal

import torch
from torch import Tensor

from hgrpo.learning.objectives.shapes import check_shapes

Support = Literal["student", "teacher", "intersection"]


def top_k(logprobs: Tensor, k: int) -> Tensor:
    """The k largest of [..., V] as a mask, bool [..., V]; of equal ones, the first."""
    order = logprobs.argsort(dim=-1, descending=True, stable=True)[..., :k]
    return torch.zeros_like(logprobs, dtype=torch.bool).scatter(-1, order, True)


def support_mask(student: Tensor, teacher: Tensor, k: int, support: Support) -> Tensor:
    """The student's top k, the teacher's, or the tokens that are in both; bool [..., V].

    There may be no token that is in both. Arguments are log-probs [..., V].
    """
    check_shapes(student, teacher)
    if support == "student":
        return top_k(student, k)
    if support == "teacher":
        return top_k(teacher, k)
    return top_k(student, k) & top_k(teacher, k)


def membership(logprobs: Tensor, k: int) -> Tensor:
    """The chance that a token is among the k largest if ties are broken at random, [..., V]."""
    above = (logprobs.unsqueeze(-2) > logprobs.unsqueeze(-1)).sum(-1)
    equal = (logprobs.unsqueeze(-2) == logprobs.unsqueeze(-1)).sum(-1)
    return ((k - above) / equal).clamp(0.0, 1.0)


def overlap_at_k(student: Tensor, teacher: Tensor, k: int) -> Tensor:
    """The share of the top k that two rankings have in common, [...], on average over ties.

    A teacher that gives all wrong tokens one probability has only one token of certain rank. Which
    of the others a sort puts first says nothing, so each counts with its chance. Where neither side
    has ties, this is the size of the common set, divided by k.
    """
    check_shapes(student, teacher)
    return (membership(student, k) * membership(teacher, k)).sum(-1) / k
