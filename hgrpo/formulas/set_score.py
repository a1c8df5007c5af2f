"""Scores for sets of answers to tasks with two objectives, and the credit of single answers.

Each answer has a reward vector r. The score of a set of M answers is E_w[max_m w . r_m], i.e. the
reward of the best answer, averaged over random weights w. Each of the set's M slots has one answer.
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

# Scores are rounded, so that floating-point errors do not make equal scores differ.
_DECIMALS = 9
_FLOOR = 1e-8
# The "gold" weights of the two objectives, for metrics and for rules with fixed weights.
GOLD = (0.5, 0.5)


def best_scalar(vectors: Tensor, weights: Tensor) -> Tensor:
    """max_m w . r_m, float [...], for fixed weights.

    Args:
        vectors: float [..., M, D].
        weights: float [D].
    """
    return (vectors * weights).sum(-1).amax(-1)


def drawn_set_score(vectors: Tensor, weights: Tensor) -> Tensor:
    """Mean of max_m w . r_m over W drawn weights, float [...].

    Args:
        vectors: float [..., M, D].
        weights: float [..., W, D]; leading axes are broadcast to those of `vectors`.
    """
    return (vectors @ weights.transpose(-1, -2)).amax(-2).mean(-1)


def crossings(vectors: Tensor) -> Tensor:
    """Sorted breakpoints t in [0, 1]: 0, 1 and all t at which two rewards are equal, [..., C].

    With weights (t, 1 - t), the reward of an answer is a line in t. For a pair of lines that are
    parallel or meet outside [0, 1], the result repeats 0 or 1.

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
    """max_m w . r_m for the weights w = (t, 1 - t), for every t in `places`, [..., C]."""
    high, low = vectors[..., 0].unsqueeze(-1), vectors[..., 1].unsqueeze(-1)
    place = places.unsqueeze(-2)
    return (place * high + (1.0 - place) * low).amax(-2)


def exact_set_score(vectors: Tensor) -> Tensor:
    """E_w[max_m w . r_m] for two objectives and w = (t, 1 - t), t uniform, float [...].

    The weights have the distribution Dirichlet(1, 1). The maximum is piecewise linear in t, so the
    trapezoidal rule between crossings is exact. The result is rounded to 1e-9.

    Args:
        vectors: float [..., M, 2].
    """
    exact = vectors.double()
    places = crossings(exact)
    return (
        torch.trapezoid(envelope(exact, places), places, dim=-1).round(decimals=_DECIMALS).float()
    )


def marginal_credit(score: Callable[[Tensor], Tensor], vectors: Tensor) -> Tensor:
    """Score of the set minus its score without the slot, for each slot, float [..., M].

    The score without the slot is a baseline. If slots are drawn independently, this baseline does
    not depend on the slot's answer, so it reduces variance without bias. Foerster et al. 2018,
    "Counterfactual Multi-Agent Policy Gradients", https://arxiv.org/abs/1705.08926, use such a
    baseline for each agent.

    Args:
        score: maps sets [..., M, D] to scores [...].
        vectors: float [..., M, D], the answers' rewards; M is at least 2.
    """
    count = vectors.shape[-2]
    rest = [[other for other in range(count) if other != slot] for slot in range(count)]
    without = [score(vectors[..., others, :]) for others in rest]
    return score(vectors).unsqueeze(-1) - torch.stack(without, -1)


def slot_advantages(credit: Tensor) -> Tensor:
    """Advantages from the credit [..., K, M] of M slots in K rollouts.

    Each slot's mean over rollouts is subtracted. All K * M centred values are divided by their
    standard deviation, so slots whose credit varies little get small advantages. If the slots of a
    rollout have equal credit, the result contains the z-scores of the group.
    """
    apart = centred(credit, -2)
    return apart / (apart.square().mean((-2, -1), keepdim=True).sqrt() + _FLOOR)


class SetRule(Rule):
    """Base class: GRPO without a KL penalty, with one advantage per slot of a set."""

    piece = "vpo"
    grouped = True

    # With a clip of 0, rounding errors would determine which slots have a gradient.
    clip: float = Field(0.2, gt=0, description="ratios are clipped to [1 - clip, 1 + clip]")

    @abstractmethod
    def score_of(self, vectors: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The score of each set [S, N, K], and the credit of each slot [S, N, K, M].

        Args:
            vectors: the answers' rewards, [S, N, K, M, 2].
            weights: drawn weights, shared by the rollouts of a group, [S, N, W, 2].
        """

    def term(self, seen: Seen) -> Term:
        advantages = slot_advantages(seen.rollout.extras["credit"]).unsqueeze(-1)
        terms, columns = surrogate(seen, advantages, self.clip, self.clip)
        return Term(seen.mean(terms), columns)


class ScalarGRPO(SetRule):
    """GRPO on the reward of a single answer with fixed weights of the objectives."""

    needs = ("groups", "one_answer", "clip_acts")

    def score_of(self, vectors: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        worth = best_scalar(vectors, vectors.new_tensor(GOLD))
        return worth, worth.unsqueeze(-1)


class Slots(SetRule):
    """Base class of rules for sets of several answers; `credit` selects the credit of a slot."""

    needs = ("groups", "several_answers", "clip_acts")

    credit: Literal["shared", "marginal"] = Field(
        "shared",
        description="credit of a slot. shared: the set's score; marginal: the slot's marginal "
        "contribution to the score",
    )

    def credited(self, score: Callable[[Tensor], Tensor], vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of sets and credit of their slots; `score` maps sets [..., M, 2] to scores."""
        worth = score(vectors)
        if self.credit == "marginal":
            return worth, marginal_credit(score, vectors)
        return worth, worth.unsqueeze(-1).expand(*vectors.shape[:-1])


class MultiRLVR(Slots):
    """GRPO on the reward of the best answer in a set, with fixed weights of the objectives.

    The score comes from the original sandbox; the control `credit: marginal` does not.
    """

    def score_of(self, vectors: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        return self.credited(partial(best_scalar, weights=vectors.new_tensor(GOLD)), vectors)


class VPOGRPO(Slots):
    """GRPO on the reward of the best answer in a set, averaged over random objective weights.

    The score comes from the original sandbox. The controls `credit: marginal` and `score: exact`
    do not.
    """

    score: Literal["drawn", "exact"] = Field(
        "drawn",
        description="mean over weights of the best answer. drawn: over sampled weights, shared by "
        "the rollouts of a group; exact: the integral",
    )
    draws: int = Field(16, gt=0, description="`score: drawn`: number of sampled weights")

    def score_of(self, vectors: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        if self.score == "exact":
            return self.credited(exact_set_score, vectors)
        return self.credited(partial(drawn_set_score, weights=weights.unsqueeze(2)), vectors)
