"""Clipped surrogates. Tensors are float, of equal shapes, one entry per sampled token."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.shapes import check_shapes


def ppo_clip(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) with r = exp(logprobs - behaviour).

    Schulman et al. 2017, "Proximal Policy Optimization Algorithms", equation 7,
    https://arxiv.org/abs/1707.06347. clip_high > clip_low is the clip-higher of Yu et al. 2025,
    "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    https://arxiv.org/abs/2503.14476.
    """
    check_shapes(logprobs, behaviour, advantages)
    ratio = torch.exp(logprobs - behaviour)
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def dual_clip(
    logprobs: Tensor,
    behaviour: Tensor,
    advantages: Tensor,
    clip_low: float,
    clip_high: float,
    bound: float,
) -> Tensor:
    """`ppo_clip`, where a negative advantage costs at most `bound` times its size.

    Without the bound, a token that the policy has made much more probable since it was sampled
    dominates the loss. See Ye et al. 2020, "Mastering Complex Control in MOBA Games with Deep
    Reinforcement Learning", equation 5, https://arxiv.org/abs/1912.09729.
    """
    terms = ppo_clip(logprobs, behaviour, advantages, clip_low, clip_high)
    return torch.where(advantages < 0, torch.minimum(terms, -bound * advantages), terms)


def clip_fraction(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """Share of tokens whose gradient the clip sets to 0: a scalar. Arguments: see `ppo_clip`."""
    check_shapes(logprobs, behaviour, advantages)
    ratio = torch.exp(logprobs - behaviour)
    high = (advantages > 0) & (ratio > 1.0 + clip_high)
    low = (advantages < 0) & (ratio < 1.0 - clip_low)
    return (high | low).float().mean()
