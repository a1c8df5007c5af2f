"""REINFORCE and its importance-weighted relatives, log-growth and mirror descent."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.aspo import aspo_weights
from hgrpo.learning.objectives.importance import importance_weights, ratios
from hgrpo.learning.objectives.log_growth import log_growth_weights
from hgrpo.learning.objectives.pg import pg_weights, policy_gradient
from hgrpo.learning.objectives.pmd import mirror_descent
from hgrpo.learning.objectives.r2vpo import r2vpo_weights
from hgrpo.learning.objectives.traj_pg import traj_pg_weights
from hgrpo.sandbox.rl.rule_settings import Aspo, Capped, MirrorDescent, R2vpo
from hgrpo.sandbox.rollout import Seen, Term, seed_mean
from hgrpo.sandbox.rule import NoSettings


def weighted(seen: Seen, weights: Tensor, **metrics: Tensor) -> Term:
    """The mean of -w log p over the tokens that take part; the log gets the means of `metrics`."""
    loss = seen.mean(policy_gradient(seen.logprobs, weights))
    return Term(loss, {name: seen.mean(values) for name, values in metrics.items()})


def reinforce(seen: Seen, own: NoSettings) -> Term:
    """REINFORCE: the weight of a token is its advantage."""
    return weighted(seen, seen.advantages)


def pg(seen: Seen, own: Capped) -> Term:
    """PG: every token with its own capped ratio."""
    old = seen.rollout.behaviour
    weights = pg_weights(seen.logprobs, old, seen.advantages, own.cap)
    return weighted(seen, weights, iw_mean=importance_weights(seen.logprobs, old, own.cap))


def traj_pg(seen: Seen, own: Capped) -> Term:
    """TrajPG: every token with the capped ratio of its whole rollout."""
    old, mask = seen.rollout.behaviour, seen.rollout.mask
    ones = torch.ones_like(seen.logprobs)
    whole = traj_pg_weights(seen.logprobs, old, ones, mask, own.cap)
    return weighted(seen, whole * seen.advantages, iw_mean=whole)


def aspo(seen: Seen, own: Aspo) -> Term:
    """ASPO: a success is weighted by the inverse of its ratio, at most 1 + clip_high; a failure by
    its ratio, at least 1 - clip_low.
    """
    old, advantages = seen.rollout.behaviour, seen.advantages
    weights = aspo_weights(seen.logprobs, old, advantages, own.low, own.high)
    ones = advantages.sign().where(advantages != 0, -advantages.new_ones(()))
    alone = aspo_weights(seen.logprobs, old, ones, own.low, own.high) * ones
    return weighted(
        seen,
        weights,
        ratio_mean=ratios(seen.logprobs, old),
        weight_mean=alone,
        pos_frac=(advantages > 0).float(),
    )


def r2vpo(seen: Seen, own: R2vpo) -> Term:
    """R2VPO: the ratio weighs a token, and its variance is penalised."""
    ratio = ratios(seen.logprobs, seen.rollout.behaviour)
    weights = r2vpo_weights(seen.logprobs, seen.rollout.behaviour, seen.advantages, own.penalty)
    return weighted(seen, weights, ratio_mean=ratio, var_penalty_mean=(ratio - 1.0).square())


def log_growth(seen: Seen, own: NoSettings) -> Term:
    """LogGrowth: successes are divided by their probability."""
    success = seen.over_tokens(seen.rollout.rewards)
    weights = log_growth_weights(seen.logprobs, seen.advantages, success)
    return weighted(seen, weights, weight_mean=weights.abs())


def pmd(seen: Seen, own: MirrorDescent) -> Term:
    """PMDMean: E[R | input] is the task's where it states it, else the batch's mean."""
    rollout = seen.rollout
    if rollout.expected is None:
        mean = seed_mean(rollout.rewards, rollout.keep)[:, None, None]
    else:
        mean = rollout.expected.unsqueeze(-1)
    log_ratio = seen.scores - seen.old_scores
    terms = mirror_descent(log_ratio, (rollout.rewards - mean).expand_as(log_ratio), own.tau)
    return Term(
        seed_mean(terms, rollout.keep),
        {"log_ratio_mean": seed_mean(log_ratio.detach(), rollout.keep)},
    )
