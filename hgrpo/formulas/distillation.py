"""The reverse KL to a teacher as a reward of sampled tokens."""

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term, taken
from hgrpo.formulas.clip import ppo_clip
from hgrpo.formulas.full_kl import entropy, reverse_kl
from hgrpo.formulas.importance import ratios
from hgrpo.formulas.rule import Rule
from hgrpo.formulas.tensors import Tensor, check_shapes


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
