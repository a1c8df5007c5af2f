"""DG with the reward to go of each token."""

import torch

from hgrpo.learning.objectives.dg import dg_gates
from hgrpo.learning.objectives.to_go import mean_to_go
from hgrpo.sandbox.rl.rule_settings import Gate
from hgrpo.sandbox.rl.rules.pg import weighted
from hgrpo.sandbox.seen import Seen, Term


def dg_token(seen: Seen, own: Gate) -> Term:
    """DGToken: the mean correctness from the token on, less the collision probability.

    Where the reward does not read the position, the baseline is 0. As rewards to go are at least 0,
    any token there is reinforced.
    """
    to_go = mean_to_go(seen.correct, seen.scored)
    collision = seen.table.detach().exp().square().sum(-1)
    advantages = to_go - torch.where(seen.scored > 0, collision, 0.0)
    gates = dg_gates(seen.logprobs, advantages, own.eta)
    return weighted(seen, gates * advantages, gate_mean=gates, rtg_mean=to_go)
