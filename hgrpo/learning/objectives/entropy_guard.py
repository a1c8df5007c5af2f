"""A brake on tokens that are already likely."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.shapes import check_shapes


def entropy_guard(logprobs: Tensor, advantages: Tensor, actions: int, strength: float) -> Tensor:
    """1 - strength clip(p - 1 / actions, 0, 1) where A > 0, and 1 elsewhere; without a gradient.

    A success whose token is already more likely than chance is reinforced less. `actions` is the
    size of the vocabulary. The rule is the original sandbox's own.
    """
    check_shapes(logprobs, advantages)
    excess = (logprobs.detach().exp() - 1.0 / actions).clamp(0.0, 1.0)
    return torch.where(advantages > 0, 1.0 - strength * excess, torch.ones_like(excess))
