"""Rules that compare the rollouts of a group by their rewards."""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from hgrpo.learning.objectives.clip import ppo_clip
from hgrpo.learning.objectives.group import centred, z_scores
from hgrpo.learning.objectives.importance import importance_weights, ratios
from hgrpo.learning.objectives.kl import kl_k3
from hgrpo.learning.objectives.maxrl import maxrl_advantages
from hgrpo.learning.objectives.pg import pg_weights
from hgrpo.learning.objectives.tempo import prefix_values, tempo_advantages
from hgrpo.sandbox.rl.rule_settings import Capped, Clip, ClipHigher, Grpo
from hgrpo.sandbox.rl.rules.pg import weighted
from hgrpo.sandbox.rollout import Rollout, Seen, Term, seed_mean

# Advantages of the rewards [S, N, K] of groups.
_NORMS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "std": lambda rewards: z_scores(rewards, -1),
    "mean": lambda rewards: centred(rewards, -1),
    "none": lambda rewards: rewards,
}


def grpo(seen: Seen, own: Grpo) -> Term:
    """GRPO: z-scores, a symmetric clip, and a penalty to the policy that sampled."""
    advantages = _NORMS[own.norm](seen.rollout.rewards)
    # A ratio lies above 0, so the band from 0 to infinity clips nothing.
    band = (1.0, math.inf) if own.clip is None else (own.clip, own.clip)
    terms, metrics = _clipped(seen, advantages, *band, own.beta)
    reduce = _over_rollouts if own.reduction == "rollout" else Seen.mean
    return Term(reduce(seen, terms), metrics)


def dr_grpo(seen: Seen, own: Clip) -> Term:
    """DrGRPO: centred rewards, and rollouts add up their tokens."""
    advantages = centred(seen.rollout.rewards, -1)
    terms, metrics = _clipped(seen, advantages, own.clip, own.clip, own.beta)
    return Term(_over_rollouts(seen, terms), metrics)


def dapo(seen: Seen, own: ClipHigher) -> Term:
    """DAPOLite: z-scores, the upper clip wider, no penalty."""
    terms, metrics = _clipped(seen, z_scores(seen.rollout.rewards, -1), own.low, own.high, 0.0)
    return Term(seen.mean(terms), metrics)


def tempo(seen: Seen, own: Capped) -> Term:
    """TEMPO: z-scores plus the change of the prefix tree's values; on bandits z-scores alone."""
    rollout, advantages = seen.rollout, tempo_credit(seen)
    weights = pg_weights(seen.logprobs, rollout.behaviour, advantages, own.cap)
    return weighted(
        seen,
        weights,
        adv_abs_mean=advantages.abs(),
        td_nonzero_frac=_moved(rollout),
        iw_mean=importance_weights(seen.logprobs, rollout.behaviour, own.cap),
    )


def tempo_credit(seen: Seen) -> Tensor:
    """TEMPO's advantages, [S, N, K, M, T]."""
    rollout = seen.rollout
    actions = rollout.actions.flatten(3)
    if actions.shape[-1] == 1:
        return seen.over_tokens(z_scores(rollout.rewards, -1))
    return tempo_advantages(rollout.rewards, actions).view_as(rollout.actions)


def _moved(rollout: Rollout) -> Tensor:
    """1 for tokens at which the prefix tree's value changes, [S, N, K, M, T]; 0 on bandits."""
    values = prefix_values(rollout.rewards, rollout.actions.flatten(3))
    moved = (values.diff(dim=-1) != 0).float().view_as(rollout.actions)
    return moved if moved.shape[-1] > 1 else torch.zeros_like(moved)


def maxrl(seen: Seen, own: Capped) -> Term:
    """MaxRL: centred rewards over the group's success rate."""
    rollout = seen.rollout
    advantages = seen.over_tokens(maxrl_advantages(rollout.rewards, -1))
    weights = pg_weights(seen.logprobs, rollout.behaviour, advantages, own.cap)
    return weighted(
        seen,
        weights,
        adv_abs_mean=advantages.abs(),
        iw_mean=importance_weights(seen.logprobs, rollout.behaviour, own.cap),
    )


def _over_rollouts(seen: Seen, terms: Tensor) -> Tensor:
    """Mean over rollouts of the sums of their tokens' terms, [S]."""
    return seed_mean((terms * seen.rollout.mask).sum((-1, -2)), seen.rollout.keep)


def _clipped(
    seen: Seen, advantages: Tensor, low: float, high: float, beta: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Clipped terms [S, N, K, M, T] of advantages [S, N, K], and what the log says of them."""
    old, every = seen.rollout.behaviour, seen.over_tokens(advantages)
    divergence = kl_k3(seen.logprobs, old)
    terms = ppo_clip(seen.logprobs, old, every, low, high) + beta * divergence
    return terms, {
        "adv_abs_mean": seen.mean(every.abs()),
        "ratio_mean": seen.mean(ratios(seen.logprobs, old)),
        "reverse_kl_mean": seen.mean(divergence.detach()),
    }
