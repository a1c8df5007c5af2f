"""MaxRL: advantages divided by the group's success rate."""

from torch import Tensor

from hgrpo.learning.objectives.group import centred

_FLOOR = 1e-8


def maxrl_advantages(rewards: Tensor, dim: int) -> Tensor:
    """(R - mean) / (mean + 1e-8) over the group's axis `dim`; rewards are 0 or 1.

    In expectation this is the gradient of a truncated series of log-likelihood: "Maximum
    Likelihood Reinforcement Learning", https://arxiv.org/abs/2602.02710.
    """
    return centred(rewards, dim) / (rewards.mean(dim, keepdim=True) + _FLOOR)
