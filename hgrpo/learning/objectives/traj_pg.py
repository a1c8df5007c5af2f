"""Importance weights of whole trajectories."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.shapes import check_shapes


def traj_pg_weights(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, mask: Tensor, cap: float
) -> Tensor:
    """min(prod_t r_t, cap) A: every token of a trajectory gets the trajectory's own ratio.

    On trajectories of one token these are the weights of `pg.pg_weights`. The product is the
    exact importance weight of off-policy evaluation: Precup, Sutton and Singh 2000, "Eligibility
    Traces for Off-Policy Policy Evaluation", https://scholarworks.umass.edu/cs_faculty_pubs/80.

    Args:
        logprobs: float [..., T]; tokens lie along the last axis.
        mask: float [..., T], 1 for tokens that exist and 0 for others.
    """
    check_shapes(logprobs, behaviour, advantages, mask)
    whole = ((logprobs - behaviour) * mask).sum(-1, keepdim=True)
    return torch.exp(whole).clamp(max=cap).detach() * advantages.detach()
