"""The delightful gradient, and what the original builds on it."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.dg import dg_gates
from hgrpo.learning.objectives.entropy_guard import entropy_guard
from hgrpo.learning.objectives.fresh_dg import freshness
from hgrpo.learning.objectives.uncertain_dg import (
    filtered_dg_weights,
    shrunk_advantages,
    uncertain_gates,
    variance_dg_weights,
)
from hgrpo.sandbox.rl.rule_settings import Doubt, Filter, Fresh, Gate, Guard
from hgrpo.sandbox.rl.rules.pg import weighted
from hgrpo.sandbox.rollout import Seen, Term


def dg(seen: Seen, own: Gate) -> Term:
    """DG: an advantage is gated by the sigmoid of delight, advantage times surprisal, over eta."""
    gates = dg_gates(seen.logprobs, seen.advantages, own.eta)
    return weighted(seen, gates * seen.advantages, gate_mean=gates)


def fresh_dg(seen: Seen, own: Fresh) -> Term:
    """FreshDG: the whole batch weighs less, the older it is."""
    fresh = _per_seed(seen, freshness(seen.rollout.age, own.decay))
    gates = dg_gates(seen.logprobs, seen.advantages, own.eta)
    return weighted(
        seen,
        fresh * gates * seen.advantages,
        gate_mean=gates,
        freshness_weight=fresh,
        batch_age=_per_seed(seen, seen.rollout.age.float()),
    )


def guarded_dg(seen: Seen, own: Guard) -> Term:
    """DGEntropyGuard: successes that are likely already weigh less."""
    gates = dg_gates(seen.logprobs, seen.advantages, own.eta)
    guard = entropy_guard(seen.logprobs, seen.advantages, seen.table.shape[-1], own.strength)
    weights = guard * gates * seen.advantages
    return weighted(seen, weights, gate_mean=gates, entropy_guard_mean=guard)


def uncertain_dg(seen: Seen, own: Doubt) -> Term:
    """UncertaintyDG: the gate subtracts the deviation of rewards."""
    doubt = uncertainty(seen)
    gates = uncertain_gates(seen.logprobs, seen.advantages, doubt, own.eta, own.scale)
    return weighted(seen, gates * seen.advantages, gate_mean=gates, uncertainty_mean=doubt)


def filtered_dg(seen: Seen, own: Filter) -> Term:
    """FilteredDG: no gradient where rewards deviate by more than the threshold."""
    doubt = uncertainty(seen)
    weights = filtered_dg_weights(seen.logprobs, seen.advantages, doubt, own.eta, own.threshold)
    return weighted(
        seen,
        weights,
        gate_mean=dg_gates(seen.logprobs, seen.advantages, own.eta),
        uncertainty_mean=doubt,
        kept_frac=(doubt <= own.threshold).float(),
    )


def variance_dg(seen: Seen, own: Doubt) -> Term:
    """RewardVarianceDG: advantages shrink where rewards deviate."""
    doubt = uncertainty(seen)
    weights = variance_dg_weights(seen.logprobs, seen.advantages, doubt, own.eta, own.scale)
    shrunk = shrunk_advantages(seen.advantages, doubt, own.scale)
    gates = dg_gates(seen.logprobs, shrunk, own.eta)
    return weighted(seen, weights, gate_mean=gates, uncertainty_mean=doubt)


def uncertainty(seen: Seen) -> Tensor:
    """Deviation of rewards in the group or, without groups, in the seed's batch."""
    rewards = seen.rollout.rewards
    if seen.rollout.group_size > 1:
        return seen.over_tokens(rewards.std(-1, correction=0, keepdim=True).expand_as(rewards))
    return _per_seed(seen, rewards.flatten(1).std(1, correction=0))


def _per_seed(seen: Seen, values: Tensor) -> Tensor:
    """Values [S], for every token."""
    shape = (-1, *(1,) * (seen.logprobs.dim() - 1))
    return torch.broadcast_to(values.view(shape), seen.logprobs.shape)
