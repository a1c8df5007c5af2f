"""ASPO: asymmetric importance weights."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.importance import ratios
from hgrpo.learning.objectives.shapes import check_shapes


def aspo_weights(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """w A with w = min(1 / r, 1 + clip_high) if A > 0, and max(r, 1 - clip_low) otherwise.

    A positive token that the policy already makes more likely (r > 1) weighs less, not more.
    "ASPO: Asymmetric Importance Sampling Policy Optimization", https://arxiv.org/abs/2510.06062.
    """
    check_shapes(logprobs, advantages)
    ratio = ratios(logprobs, behaviour)
    up = ratio.reciprocal().clamp(max=1.0 + clip_high)
    down = ratio.clamp(min=1.0 - clip_low)
    return torch.where(advantages > 0, up, down) * advantages.detach()
