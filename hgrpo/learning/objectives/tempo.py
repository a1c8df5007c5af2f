"""TEMPO: credit from the prefix tree that a group's rollouts span."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.group import centred

_FLOOR = 1e-8


def prefix_values(rewards: Tensor, actions: Tensor) -> Tensor:
    """V [..., K, T + 1]: the mean reward of the group's rollouts that share the first t tokens.

    Args:
        rewards: float [..., K].
        actions: int64 [..., K, T].
    """
    same = (actions.unsqueeze(-2) == actions.unsqueeze(-3)).to(rewards.dtype)
    shared = torch.cat([torch.ones_like(same[..., :1]), same.cumprod(-1)], -1)
    total = (shared * rewards[..., None, :, None]).sum(-2)
    return total / shared.sum(-2)


def tempo_advantages(rewards: Tensor, actions: Tensor) -> Tensor:
    """A_t = (R - mean + V(s_t+1) - V(s_t)) / std, float [..., K, T]; 0 in groups of equal rewards.

    The paper that names TEMPO: https://arxiv.org/abs/2509.18314. Arguments: see `prefix_values`.
    """
    values = prefix_values(rewards, actions)
    change = values[..., 1:] - values[..., :-1]
    spread = rewards.std(-1, correction=0, keepdim=True).unsqueeze(-1)
    scaled = (centred(rewards, -1).unsqueeze(-1) + change) / spread.clamp(min=_FLOOR)
    return torch.where(spread < _FLOOR, 0.0, scaled)
