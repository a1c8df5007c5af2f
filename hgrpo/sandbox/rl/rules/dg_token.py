"""DG with the reward to go of each token."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.dg import dg_gates
from hgrpo.learning.objectives.full_kl import collision_probability
from hgrpo.learning.objectives.to_go import mean_to_go
from hgrpo.sandbox.rl.rule_settings import Gate
from hgrpo.sandbox.rl.rules.pg import weighted
from hgrpo.sandbox.rollout import Seen, Term


def dg_token(seen: Seen, own: Gate) -> Term:
    """DGToken: the mean correctness from the token on, less the collision probability.

    Where the reward does not read the position, the baseline is 0. As rewards to go are at least 0,
    any token there is reinforced.
    """
    advantages = token_credit(seen)
    gates = dg_gates(seen.logprobs, advantages, own.eta)
    to_go = mean_to_go(seen.correct, seen.scored)
    return weighted(seen, gates * advantages, gate_mean=gates, rtg_mean=to_go)


def token_credit(seen: Seen) -> Tensor:
    """DGToken's advantages, [S, N, K, M, T]."""
    return above_chance(seen, mean_to_go(seen.correct, seen.scored))


def above_chance(seen: Seen, credit: Tensor) -> Tensor:
    """Credit [S, N, K, M, T] less the collision probability where the reward reads the position."""
    return credit - torch.where(seen.scored > 0, collision_probability(seen.table), 0.0)
