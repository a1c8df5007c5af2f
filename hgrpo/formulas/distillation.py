"""Distillation: token rewards from the reverse KL to a teacher, and KLs over top-k supports.

Divergences over a part of the vocabulary take log-probs [..., V] and a mask of the support S, bool
[..., V]. Results have the shape [...]. The divergences differ in how they treat tokens outside S:

- Truncated reverse KL: ignores tokens outside S, so the student can lower the loss by leaking
  probability to them.
- Renormalised reverse KL: conditions both distributions on S, so P(S) has no effect.
- Tail reverse KL: merges tokens outside S into one additional token, so leaks increase the loss.
- Truncated forward KL: weights tokens by the teacher, so it always pulls the student towards S.

If S is the whole vocabulary, the first three are the reverse KL, and the last is the forward KL.
The truncated reverse KL comes from the original sandbox. The other three are controls that isolate
failure modes of the truncated reverse KL.
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
# log 0 is replaced by a finite value, because with -inf, the gradient would be NaN if S is empty or
# the whole vocabulary.
_LOG_ZERO = -1e9


def teacher_rewards(behaviour: Tensor, teacher: Tensor) -> Tensor:
    """log q - log p of sampled tokens, no gradient; its mean over samples is -KL(p || q).

    Used as the token's advantage, it gives the gradient of the reverse KL at the sampled prefix.
    Used as a reward, with credit for later tokens, it gives the gradient of the whole sequence's
    reverse KL. See Gu et al. 2024, "MiniLLM: Knowledge Distillation of Large Language Models",
    section 2, https://arxiv.org/abs/2306.08543.

    Args:
        behaviour: log-probs of the sampled tokens at sampling time, [...].
        teacher: the teacher's log-probs of the same tokens, [...].
    """
    check_shapes(behaviour, teacher)
    return (teacher - behaviour).detach()


def rewards_to_go(rewards: Tensor) -> Tensor:
    """For each token, sum of the rewards from this token on, along the last axis."""
    return rewards.flip(-1).cumsum(-1).flip(-1)


def teacher_of(seen: Seen) -> Tensor:
    """The teacher's log-probs of all actions, [S, N, K, M, T, V]."""
    return seen.rollout.extras["teacher"]


def top1_agreement(student: Tensor, teacher: Tensor) -> Tensor:
    """1 where student and teacher have the same most likely token, [...], else 0."""
    return (student.argmax(-1) == teacher.argmax(-1)).float()


class OPDReverseKL(Rule):
    """The exact reverse KL to the teacher after every prefix.

    Kept: the reverse KL at prefixes sampled by the student, without a gradient through the
    sampling. Omitted: prefixes from a fixed set.
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
    """A clipped policy gradient with each token's reward as its advantage.

    Kept: log q - log p as the reward of a sampled token. Omitted: credit for later tokens, sampling
    from the teacher, and normalisation by length.
    """

    piece = "opd"
    needs = ("ratios",)

    # With a clip of 0, rounding errors would determine which tokens have a gradient.
    clip: float = Field(0.2, gt=0, description="ratios are clipped to [1 - clip, 1 + clip]")

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
    """sum over S of p (log p - log q), which may be negative."""
    check_shapes(student, teacher, support)
    return (support * student.exp() * (student - teacher)).sum(-1)


def renormalised_reverse_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """KL(p given S || q given S); 0 for an empty S."""
    conditioned = [_within(each, support).log_softmax(-1) for each in (student, teacher)]
    return truncated_reverse_kl(*conditioned, support)


def tail_reverse_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """KL(p || q) with all tokens outside S merged into one; a lower bound of the reverse KL."""
    rest = [_within(each, ~support).logsumexp(-1, keepdim=True) for each in (student, teacher)]
    inside = truncated_reverse_kl(student, teacher, support)
    return inside + reverse_kl(*rest)


def truncated_forward_kl(student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
    """sum over S of q (log q - log p), which may be negative."""
    return truncated_reverse_kl(teacher, student, support)


def mass(logprobs: Tensor, support: Tensor) -> Tensor:
    """The probability of S, [...]."""
    return (support * logprobs.exp()).sum(-1)


def _within(logprobs: Tensor, support: Tensor) -> Tensor:
    return torch.where(support, logprobs, _LOG_ZERO)


def top_k(logprobs: Tensor, k: int) -> Tensor:
    """Mask of the k largest entries, bool [..., V]; ties are broken in favour of the first."""
    order = logprobs.argsort(dim=-1, descending=True, stable=True)[..., :k]
    return torch.zeros_like(logprobs, dtype=torch.bool).scatter(-1, order, True)


def support_mask(student: Tensor, teacher: Tensor, k: int, support: Support) -> Tensor:
    """Mask of the student's top k tokens, the teacher's, or their intersection, bool [..., V].

    The intersection may be empty. Arguments are log-probs [..., V].
    """
    if support == "student":
        return top_k(student, k)
    if support == "teacher":
        return top_k(teacher, k)
    return top_k(student, k) & top_k(teacher, k)


def membership(logprobs: Tensor, k: int) -> Tensor:
    """Probability that a token is among the k largest with random tie-breaking, [..., V]."""
    above = (logprobs.unsqueeze(-2) > logprobs.unsqueeze(-1)).sum(-1)
    equal = (logprobs.unsqueeze(-2) == logprobs.unsqueeze(-1)).sum(-1)
    return ((k - above) / equal).clamp(0.0, 1.0)


def overlap_at_k(student: Tensor, teacher: Tensor, k: int) -> Tensor:
    """Expected size of the intersection of two top-k sets, divided by k, [...].

    The expectation is over random tie-breaking, because a teacher may assign the same probability
    to all wrong tokens.
    """
    return (membership(student, k) * membership(teacher, k)).sum(-1) / k


class Truncation(Rule):
    """Base class of divergences over the top-k set of the student, the teacher, or both.

    The set depends on the current student but is detached from the gradient.
    """

    piece = "opd"
    needs = ("truncates",)

    k: int = Field(2, gt=0, description="size of a top-k set")
    support: Support = Field(
        "student", description="top-k set: the student's, the teacher's, or their intersection"
    )

    @abstractmethod
    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        """The loss after each prefix, [...]."""

    def term(self, seen: Seen) -> Term:
        """The mean divergence, and log columns with the set's probability under both policies.

        `support_has_best` is the fraction of prefixes whose set includes the teacher's most likely
        token. If `student_topk_mass` falls, the student leaks probability to other tokens.
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
    """The reverse KL restricted to a top-k set, without a cost for tokens outside the set.

    This rule comes from the original. It omits the terms of OPDReverseKL outside the set, and does
    not renormalise the distributions.
    """

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return truncated_reverse_kl(student, teacher, support)

    def term(self, seen: Seen) -> Term:
        term = super().term(seen)
        return Term(term.loss, {"opd_topk_reverse_kl": term.loss.detach(), **term.metrics})


class OPDTopKRenormalised(Truncation):
    """The reverse KL of the two distributions conditioned on a top-k set.

    This is a control for OPDTopKReverseKL, and is not in the original.
    """

    needs = ("truncates", "several_tokens")

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return renormalised_reverse_kl(student, teacher, support)


class OPDTopKTail(Truncation):
    """The reverse KL with all tokens outside a top-k set merged into one token.

    This is a control for OPDTopKReverseKL, and is not in the original.
    """

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return tail_reverse_kl(student, teacher, support)


class OPDTopKForwardKL(Truncation):
    """The forward KL restricted to a top-k set, with tokens weighted by the teacher.

    This is a control for OPDTopKReverseKL, and is not in the original.
    """

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return truncated_forward_kl(student, teacher, support)
