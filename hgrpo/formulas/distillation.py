"""Distillation: a teacher's rewards for tokens, and KL divergences over a subset of the vocabulary.

Arguments of these divergences are log-probs [..., V] and a mask of the subset S, bool [..., V].
Results have the shape [...]. The divergences differ in how they treat tokens outside S:

- Truncated reverse KL: ignores tokens outside S. The student can therefore lower the loss by moving
  probability to these tokens.
- Renormalised reverse KL: conditions both distributions on S, so P(S) has no effect.
- Tail reverse KL: merges tokens outside S into one additional token, so P(S) has an effect.
- Truncated forward KL: weights each token by the teacher's probability, which moves the student's
  probability to S.

If S is the whole vocabulary, the first three equal the reverse KL; the last equals the forward KL.
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
# Used in place of log 0 = -inf, because gradients would be NaN if S is empty or has all tokens.
_LOG_ZERO = -1e9


def teacher_rewards(behaviour: Tensor, teacher: Tensor) -> Tensor:
    """log q - log p of sampled tokens, no gradient; its mean over samples is -KL(p || q).

    If this value is the advantage of a token, the policy gradient lowers the reverse KL at the
    sampled prefix. If the advantage also includes the values of all later tokens, the policy
    gradient lowers the reverse KL of the whole sequence. See Gu et al. 2024, "MiniLLM: Knowledge
    Distillation of Large Language Models", section 2, https://arxiv.org/abs/2306.08543.

    Args:
        behaviour: log-probs of the sampled tokens at sampling time, [...].
        teacher: the teacher's log-probs of the same tokens, [...].
    """
    check_shapes(behaviour, teacher)
    return (teacher - behaviour).detach()


def rewards_to_go(rewards: Tensor) -> Tensor:
    """Sum of the rewards of each token and all later tokens, along the last axis."""
    return rewards.flip(-1).cumsum(-1).flip(-1)


def teacher_of(seen: Seen) -> Tensor:
    """The teacher's log-probs of all actions, [S, N, K, M, T, V]."""
    return seen.rollout.extras["teacher"]


def top1_agreement(student: Tensor, teacher: Tensor) -> Tensor:
    """1 where the student and the teacher have the same most likely token, else 0, [...]."""
    return (student.argmax(-1) == teacher.argmax(-1)).float()


class OPDReverseKL(Rule):
    """The exact reverse KL to the teacher at every prefix of the student's rollouts.

    Kept from the paper: the student samples the prefixes, and there is no gradient through the
    sampling. Omitted: prefixes from a fixed data set.
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
    """A clipped policy gradient in which the advantage of a token is its reward from the teacher.

    Kept from the paper: the reward log q - log p of a sampled token. Omitted: rewards of later
    tokens in the advantage, sampling from the teacher, and normalisation by length.
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
    """KL(p || q) with the tokens outside S merged into one token; at most the reverse KL."""
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
    """Mask of the top k tokens of the student, of the teacher, or of both, bool [..., V].

    "intersection" selects the tokens in both sets, possibly none. Arguments are log-probs [..., V].
    """
    if support == "student":
        return top_k(student, k)
    if support == "teacher":
        return top_k(teacher, k)
    return top_k(student, k) & top_k(teacher, k)


def membership(logprobs: Tensor, k: int) -> Tensor:
    """Probability that each token is in the top-k set if ties are broken at random, [..., V]."""
    above = (logprobs.unsqueeze(-2) > logprobs.unsqueeze(-1)).sum(-1)
    equal = (logprobs.unsqueeze(-2) == logprobs.unsqueeze(-1)).sum(-1)
    return ((k - above) / equal).clamp(0.0, 1.0)


def overlap_at_k(student: Tensor, teacher: Tensor, k: int) -> Tensor:
    """Expected size of the intersection of two top-k sets, divided by k, [...].

    The expectation is over random tie-breaking, which matters if a teacher assigns the same
    probability to all wrong tokens.
    """
    return (membership(student, k) * membership(teacher, k)).sum(-1) / k


class Truncation(Rule):
    """Base class of divergences over the top-k set of the student, the teacher, or both.

    There is no gradient through the choice of the set, which may depend on the current student.
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
        """The mean divergence, and metrics of the token set to log.

        `support_has_best` is the fraction of prefixes whose set includes the teacher's most likely
        token. `student_topk_mass` is the set's probability under the student.
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

    This rule comes from the original sandbox. It equals OPDReverseKL without the terms of tokens
    outside the set. The distributions are not renormalised.
    """

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return truncated_reverse_kl(student, teacher, support)

    def term(self, seen: Seen) -> Term:
        term = super().term(seen)
        return Term(term.loss, {"opd_topk_reverse_kl": term.loss.detach(), **term.metrics})


class OPDTopKRenormalised(Truncation):
    """The reverse KL from student to teacher, both conditioned on a top-k set.

    This is a control for OPDTopKReverseKL that is not in the original sandbox.
    """

    needs = ("truncates", "several_tokens")

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return renormalised_reverse_kl(student, teacher, support)


class OPDTopKTail(Truncation):
    """The reverse KL with all tokens outside a top-k set merged into one token.

    This is a control for OPDTopKReverseKL that is not in the original sandbox.
    """

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return tail_reverse_kl(student, teacher, support)


class OPDTopKForwardKL(Truncation):
    """The forward KL restricted to a top-k set; the teacher's probabilities weight the tokens.

    This is a control for OPDTopKReverseKL that is not in the original sandbox.
    """

    def divergence(self, student: Tensor, teacher: Tensor, support: Tensor) -> Tensor:
        return truncated_forward_kl(student, teacher, support)
