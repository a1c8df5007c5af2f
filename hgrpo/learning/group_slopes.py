"""The first pass of a rule that compares a group's trajectories: its loss, and where it points."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hgrpo.formulas.rule import GroupRule


def group_slopes(
    rule: GroupRule, groups: Sequence[Sequence[int]], scores: Tensor, old: Tensor, skills: Tensor
) -> tuple[float, Tensor]:
    """The mean loss of the groups, and its derivatives by the trajectories' log-probs.

    A group's loss depends on the policy only through the log-probs c_i of its trajectories. So its
    gradient is the sum of (dL / dc_i) grad c_i, by the chain rule, and a second pass may take the
    trajectories in any parts: the gradient is exact.

    Args:
        groups: places of each group's trajectories in the tensors.
        scores, old, skills: [B]; log-probs now, those at the start of the update, and advantages.

    Returns:
        The loss, and dL / dc_i, float64 [B].
    """
    leaf = scores.detach().double().requires_grad_()
    old, skills = old.double(), skills.double()
    losses = [rule.loss(leaf[list(each)], old[list(each)], skills[list(each)]) for each in groups]
    loss = torch.stack(losses).mean()
    (slopes,) = torch.autograd.grad(loss, leaf)
    return float(loss.detach()), slopes
