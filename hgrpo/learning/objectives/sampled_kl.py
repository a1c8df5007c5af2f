"""The reverse KL to a teacher as a reward of sampled tokens."""

from torch import Tensor

from hgrpo.learning.objectives.shapes import check_shapes


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
