"""The worth of a set of answers under an unknown weighting of two objectives; credit of its slots.

An answer has a vector of rewards, r. A set is worth E_w[max_m w . r_m]: under weights w, the best
of its M answers counts.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Literal

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term
from hgrpo.formulas.clip import surrogate
from hgrpo.formulas.group import centred
from hgrpo.formulas.rule import Rule
from hgrpo.formulas.tensors import Tensor, torch

# Sets of equal worth must be equal in a comparison of a group, whatever their sums' rounding.
_DECIMALS = 9
_FLOOR = 1e-8
# How the two objectives weigh where the weighting is known.
GOLD = (0.5, 0.5)


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


def marginal_credit(score: Callable[[Tensor], Tensor], vectors: Tensor) -> Tensor:
    """The loss of the set without each slot, float [..., M]; needs M of at least 2.

    Args:
        score: worth [...] of sets [..., M, D].
        vectors: float [..., M, D], the answers' rewards.

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


class SetRule(Rule):
    """GRPO's surrogate without a penalty; a slot's credit is compared within its group."""

    piece = "vpo"
    grouped = True

    # At 0, rounding would decide which slots train.
    clip: float = Field(0.2, gt=0, description="the ratio is clipped to 1 plus and minus this")

    @abstractmethod
    def score_of(self, vectors: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The worth of each set [S, N, K], and the credit of each slot [S, N, K, M].

        Args:
            vectors: the answers' rewards, [S, N, K, M, 2].
            weights: drawn weights that the rollouts of a group share, [S, N, W, 2].
        """

    def term(self, seen: Seen) -> Term:
        advantages = slot_advantages(seen.rollout.extras["credit"]).unsqueeze(-1)
        terms, columns = surrogate(seen, advantages, self.clip, self.clip)
        return Term(seen.mean(terms), columns)


class ScalarGRPO(SetRule):
    """The worth of an answer is its reward under the gold weights."""

    needs = ("groups", "one_answer", "clip_acts")

    def score_of(self, vectors: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        worth = best_scalar(vectors, vectors.new_tensor(GOLD))
        return worth, worth.unsqueeze(-1)


class Slots(SetRule):
    """What a slot of a set of several answers is credited."""

    needs = ("groups", "several_answers", "clip_acts")

    credit: Literal["shared", "marginal"] = Field(
        "shared",
        description="what a slot is credited. shared: the set's score; marginal: what the score "
        "loses without the slot",
    )

    def credited(self, score: Callable[[Tensor], Tensor], vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Worth and credit by a score that takes sets [..., M, 2]."""
        worth = score(vectors)
        if self.credit == "marginal":
            return worth, marginal_credit(score, vectors)
        return worth, worth.unsqueeze(-1).expand(*vectors.shape[:-1])


class MultiRLVR(Slots):
    """The worth of a set is its best answer under the gold weights.

    The original's own score. `credit: marginal` is a control that the original lacks.
    """

    def score_of(self, vectors: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return self.credited(partial(best_scalar, weights=vectors.new_tensor(GOLD)), vectors)


class VPOGRPO(Slots):
    """The worth of a set is the mean over weights of the best answer under them.

    The original's own score. `credit: marginal` and `score: exact` are controls that the original
    lacks.
    """

    score: Literal["drawn", "exact"] = Field(
        "drawn",
        description="the mean over weights of the best answer. drawn: over weights that the "
        "rollouts of a group share; exact: its integral",
    )
    draws: int = Field(16, gt=0, description="drawn: how many weights")

    def score_of(self, vectors: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        if self.score == "exact":
            return self.credited(exact_set_score, vectors)
        return self.credited(partial(drawn_set_score, weights=weights.unsqueeze(2)), vectors)
