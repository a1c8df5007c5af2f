"""Distillation: the reverse KL to a teacher as a reward of tokens, and KLs over a part of tokens.

Divergences over a part of the vocabulary take log-probs [..., V] and a mask of the support S, bool
[..., V]; results lose the last axis. With S the whole vocabulary, the first three are the reverse
KL and the last is the forward KL. They differ in the rest of the vocabulary:

- The truncated one ignores it, so the student lowers the loss by moving probability there. That
  probability leaks.
- The renormalised one compares the two distributions given S. It does not depend on the
  probability of S.
- The one with a tail counts the rest as one more token, so a leak costs.
- The forward one weighs by the teacher. It pulls the student to S and never pushes it away.

The truncated reverse form is the original sandbox's own. The other three are ours, and separate
its faults.
"""

from abc import abstractmethod
from typing import Literal

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term, taken
from hgrpo.formulas.clip import ppo_clip
from hgrpo.formulas.full_kl import entropy, reverse_kl
from hgrpo.formulas.importance import ratios
from hgrpo.formulas.rule import Rule
from hgrpo.formulas.tensors import Tensor, check_shapes, torch

Support = Literal["student", "teacher", "intersection"]
# Stands for log 0. Infinity would make the gradient NaN where nothing or everything is in S.
_LOG_ZERO = -1e9


def teacher_rewards(behaviour: Tensor, teacher: Tensor) -> Tensor:
    """log q - log p of sampled tokens, without a gradient; its mean over samples is -KL(p || q).

    Used as the advantage of the same token, its policy gradient is that of the reverse KL at the
    sampled prefix. Used as a reward, it gives the gradient of the whole sequence's reverse KL.
    See Gu et al. 2024, "MiniLLM: Knowledge Distillation of Large Language Models", section 2,
    https://arxiv.org/abs/2306.08543.

    Args:
        behaviour: log-probs of the sampled tokens when they were sampled, [...].
        teacher: the teacher's log-probs of the same tokens, [...].
    """
    check_shapes(behaviour, teacher)
    return (teacher - behaviour).detach()


def rewards_to_go(rewards: Tensor) -> Tensor:
    """The sum of the rewards from each token on, along the last axis, in the shape of `rewards`."""
    return rewards.flip(-1).cumsum(-1).flip(-1)


def teacher_of(seen: Seen) -> Tensor:
    """The teacher's log-probs of every action, [S, N, K, M, T, V]."""
    return seen.rollout.extras["teacher"]


def top1_agreement(student: Tensor, teacher: Tensor) -> Tensor:
    """1 where both like the same token best, [...], for log-probs [..., V]."""
    return (student.argmax(-1) == teacher.argmax(-1)).float()


class OPDReverseKL(Rule):
    """The exact reverse KL to the teacher after every prefix.

    Kept: the reverse KL at prefixes that the student sampled, without a gradient through the
    sampling. Left out: prefixes from a fixed set.
    """

    piece = "opd"

    def term(self, seen: Seen) -> Term:
        student, teacher = seen.table, teacher_of(seen)
        loss = seen.mean(reverse_kl(student, teacher))
        columns = {
            "teacher_entropy": entropy(teacher),
            "student_entropy": entropy(student.detach()),
            "top1_agreement": top1_agreement(student, teacher),
        }
        return Term(loss, {"opd_reverse_kl": loss.detach(), **seen.means(columns)})


class OPDPG(Rule):
    """A clipped policy gradient, where the advantage of a token is its own reward.

    Kept: log q - log p as the reward of a sampled token. Left out: credit for later tokens,
    sampling from the teacher, and the norm by length.
    """

    piece = "opd"
    needs = ("ratios",)

    # At 0, rounding would decide which tokens train.
    clip: float = Field(0.2, gt=0, description="the ratio is clipped to 1 plus and minus this")

    def term(self, seen: Seen) -> Term:
        old = seen.rollout.behaviour
        advantages = teacher_rewards(old, taken(teacher_of(seen), seen.rollout.actions))
        mean = seen.mean(advantages)
        return Term(
            seen.mean(ppo_clip(seen.logprobs, old, advantages, self.clip, self.clip)),
            {
                "sampled_reverse_kl": -mean,
                "opd_advantage_mean": mean,
                "ratio_mean": seen.mean(ratios(seen.logprobs, old)),
            },
        )


def truncated_reverse_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """sum over S of p (log p - log q), which may be below 0."""
    check_shapes(student, teacher, support)
    return (support * student.exp() * (student - teacher)).sum(-1)


def renormalised_reverse_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """KL(p given S || q given S); 0 for an empty S."""
    conditioned = [_within(each, support).log_softmax(-1) for each in (student, teacher)]
    return truncated_reverse_kl(*conditioned, support)


def tail_reverse_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """KL(p || q) where all tokens outside S are one token; a lower bound of the reverse KL."""
    rest = [_within(each, ~support).logsumexp(-1, keepdim=True) for each in (student, teacher)]
    inside = truncated_reverse_kl(student, teacher, support)
    return inside + reverse_kl(*rest)


def truncated_forward_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """sum over S of q (log q - log p), which may be below 0."""
    return truncated_reverse_kl(teacher, student, support)


def mass(logprobs: Tensor, support: Tensor) -> Tensor:
    """The probability of S, [...]."""
    return (support * logprobs.exp()).sum(-1)


def _within(logprobs: Tensor, support: Tensor) -> Tensor:
    return torch.where(support, logprobs, _LOG_ZERO)


def top_k(logprobs: Tensor, k: int) -> Tensor:
    """The k largest of [..., V] as a mask, bool [..., V]; of equal ones, the first."""
    order = logprobs.argsort(dim=-1, descending=True, stable=True)[..., :k]
    return torch.zeros_like(logprobs, dtype=torch.bool).scatter(-1, order, True)


def support_mask(student: Tensor, teacher: Tensor, k: int, support: Support) -> Tensor:
    """The student's top k, the teacher's, or the tokens that are in both; bool [..., V].

    There may be no token that is in both. Arguments are log-probs [..., V].
    """
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

    A teacher that gives all wrong tokens one probability has only one token of certain rank. The
    order of the others by a sort means nothing, so each counts with its chance. Where neither side
    has ties, this is the size of the common set, divided by k.
    """
    return (membership(student, k) * membership(teacher, k)).sum(-1) / k


class Truncation(Rule):
    """A divergence over a top-k set of the student's, the teacher's, or of both.

    The set follows the current student, and is a constant for the gradient.
    """

    piece = "opd"
    needs = ("truncates",)

    k: int = Field(2, gt=0, description="tokens of a top-k set")
    support: Support = Field(
        "student", description="whose top-k set: student, teacher, or what both have in common"
    )

    @abstractmethod
    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        """The loss after each prefix, [...]."""

    def term(self, seen: Seen) -> Term:
        """The mean divergence, and how much of both distributions the set holds.

        `support_has_best` is the share of prefixes whose set holds the teacher's best token, which
        is the one to learn. If the student's mass falls, it leaks.
        """
        student, teacher = seen.table.detach(), teacher_of(seen)
        support = support_mask(student, teacher, self.k, self.support)
        columns = {
            "student_topk_mass": mass(student, support),
            "teacher_topk_mass": mass(teacher, support),
            "topk_support_size": support.sum(-1).float(),
            "support_has_best": (support & top_k(teacher, 1)).any(-1).float(),
            "top1_agreement": top1_agreement(student, teacher),
        }
        return Term(seen.mean(self.divergence(seen.table, teacher, support)), seen.means(columns))


class OPDTopKReverseKL(Truncation):
    """The reverse KL over the set; what lies outside costs nothing.

    The original's own: the terms of OPDReverseKL within a top-k set, which are not renormalised.
    """

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return truncated_reverse_kl(student, teacher, support)

    def term(self, seen: Seen) -> Term:
        term = super().term(seen)
        return Term(term.loss, {"opd_topk_reverse_kl": term.loss.detach(), **term.metrics})


class OPDTopKRenormalised(Truncation):
    """The reverse KL of both distributions given the set.

    A control of OPDTopKReverseKL that the original lacks.
    """

    needs = ("truncates", "several_tokens")

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return renormalised_reverse_kl(student, teacher, support)


class OPDTopKTail(Truncation):
    """The reverse KL, where what lies outside the set counts as one token.

    A control of OPDTopKReverseKL that the original lacks.
    """

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return tail_reverse_kl(student, teacher, support)


class OPDTopKForwardKL(Truncation):
    """The terms of the forward KL within the set, weighted by the teacher.

    A control of OPDTopKReverseKL that the original lacks.
    """

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return truncated_forward_kl(student, teacher, support)
