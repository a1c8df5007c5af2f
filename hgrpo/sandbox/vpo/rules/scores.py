"""Scores of sets: from the answers' reward vectors to the credit of each slot.

A score takes vectors [S, N, K, M, 2], weights [S, N, W, 2] that the rollouts of a group share, and
the rule's settings. It returns the worth of each set [S, N, K], and the credit [S, N, K, M].
"""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from hgrpo.learning.objectives.set_score import (
    best_scalar,
    drawn_set_score,
    exact_set_score,
    marginal_credit,
    shared_credit,
)
from hgrpo.sandbox.vpo.pareto import GOLD
from hgrpo.sandbox.vpo.rule_settings import Clipped, Sets, Slots


def gold(vectors: Tensor, weights: Tensor, own: Clipped) -> tuple[Tensor, Tensor]:
    """ScalarGRPO and MultiRLVR: the best answer under the gold weights."""
    return _credited(partial(best_scalar, weights=GOLD), vectors, own)


def sets(vectors: Tensor, weights: Tensor, own: Sets) -> tuple[Tensor, Tensor]:
    """VPOGRPO: the mean over weights of the best answer under them."""
    if own.score == "exact":
        return _credited(exact_set_score, vectors, own)
    return _credited(partial(drawn_set_score, weights=weights.unsqueeze(2)), vectors, own)


def _credited(
    score: Callable[[Tensor], Tensor], vectors: Tensor, own: Clipped
) -> tuple[Tensor, Tensor]:
    marginal = isinstance(own, Slots) and own.credit == "marginal"
    return score(vectors), (marginal_credit if marginal else shared_credit)(score, vectors)
