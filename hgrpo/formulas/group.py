"""Advantages within a group of rollouts of one task."""

from hgrpo.formulas.tensors import Tensor, torch

_FLOOR = 1e-8


def centred(rewards: Tensor, dim: int) -> Tensor:
    """R - mean(R) over `dim`; exactly 0 if all rewards are equal, even if the mean is rounded.

    Rewards are not divided by the standard deviation, as in Liu et al. 2025, "Understanding
    R1-Zero-Like Training", https://arxiv.org/abs/2503.20783.
    """
    equal = rewards.amax(dim, keepdim=True) == rewards.amin(dim, keepdim=True)
    return torch.where(equal, 0.0, rewards - rewards.mean(dim, keepdim=True))


def z_scores(rewards: Tensor, dim: int) -> Tensor:
    """(R - mean) / (population standard deviation + 1e-8) over `dim`; 0 for equal rewards.

    Shao et al. 2024, "DeepSeekMath", https://arxiv.org/abs/2402.03300.
    """
    return centred(rewards, dim) / (rewards.std(dim, correction=0, keepdim=True) + _FLOOR)


def leave_one_out(rewards: Tensor, dim: int) -> Tensor:
    """For each rollout, the mean reward of the group's other rollouts (at least one).

    Kool, van Hoof and Welling 2019, "Buy 4 REINFORCE Samples, Get a Baseline for Free!",
    https://openreview.net/forum?id=r1lgTGL5DE.
    """
    return (rewards.sum(dim, keepdim=True) - rewards) / (rewards.shape[dim] - 1)


def mixed_rate(success: Tensor, size: int) -> Tensor:
    """1 - q^K - (1 - q)^K: probability that K rollouts include both successes and failures.

    Args:
        success: float, the probability q of success.
        size: K.
    """
    return 1.0 - success**size - (1.0 - success) ** size


def mixed_reward_rate(chances: Tensor, rewards: Tensor, size: int) -> Tensor:
    """1 - sum_r P(R = r)^K: probability that the rewards of K rollouts are not all equal, [...].

    With rewards 0 and 1 this is `mixed_rate`.

    Args:
        chances: float [..., O], the probabilities of all outputs, which sum to 1.
        rewards: float [..., O], the reward of each output.
        size: K.
    """
    levels = [(chances * (rewards == level)).sum(-1) for level in rewards.unique()]
    return 1.0 - torch.stack(levels).pow(size).sum(0)
