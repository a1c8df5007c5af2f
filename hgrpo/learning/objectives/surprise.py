"""How far a rollout is from what another policy would do, token by token.

`table` holds that policy's log-probs of all actions after each prefix, `chosen` those of the
rollout's actions. See "Pedagogical RL", https://noahziems.com/pedagogical-rl.
"""

import math

import torch
from torch import Tensor


def surprise_gaps(table: Tensor, chosen: Tensor) -> Tensor:
    """max_a log p(a) - log p(chosen), in nats, at least 0; 0 where the policy would do the same.

    Args:
        table: float [..., V].
        chosen: float [...].
    """
    return table.amax(-1) - chosen


def spike(gaps: Tensor, beta: float) -> Tensor:
    """(logsumexp(beta gaps) - log T) / beta over the T tokens of the last axis.

    Towards beta = 0 it is the mean gap, towards infinity the largest: one token that the policy
    would never emit weighs more than many that are a little unlikely.
    """
    return (torch.logsumexp(beta * gaps, -1) - math.log(gaps.shape[-1])) / beta
