"""Rules that compare the rollouts of a group by their rewards."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.clip import ppo_clip
from hgrpo.learning.objectives.group import centred, z_scores
from hgrpo.learning.objectives.importance import importance_weights, ratios
from hgrpo.learning.objectives.kl import kl_k3
from hgrpo.learning.objectives.maxrl import maxrl_advantages
from hgrpo.learning.objectives.pg import pg_weights
from hgrpo.learning.objectives.tempo import prefix_values, tempo_advantages
from hgrpo.sandbox.rl.rule_settings import Capped, Clip, ClipHigher
from hgrpo.sandbox.rl.rules.pg import weighted
from hgrpo.sandbox.rollout import seed_mean
from hgrpo.sandbox.seen import Seen, Term


def grpo(seen: Seen, own: Clip) -> Term:
    """GRPO: z-scores, a symmetric clip, and a penalty to the policy that sampled."""
    terms, metrics = _clipped(
        seen, z_scores(seen.rollout.rewards, -1), own.clip, own.clip, own.beta
    )
    return Term(seen.mean(terms), metrics)


def dr_grpo(seen: Seen, own: Clip) -> Term:
    """DrGRPO: centred rewards, and rollouts add up their tokens."""
    rollout = seen.rollout
    terms, metrics = _clipped(seen, centred(rollout.rewards, -1), own.clip, own.clip, own.beta)
    return Term(seed_mean((terms * rollout.mask).sum((-1, -2)), rollout.keep), metrics)


def dapo(seen: Seen, own: ClipHigher) -> Term:
    """DAPOLite: z-scores, the upper clip wider, no penalty."""
    terms, metrics = _clipped(seen, z_scores(seen.rollout.rewards, -1), own.low, own.high, 0.0)
    return Term(seen.mean(terms), metrics)


def tempo(seen: Seen, own: Capped) -> Term:
    """TEMPO: z-scores plus the change of the prefix tree's values; on bandits z-scores alone."""
    rollout = seen.rollout
    actions = rollout.actions.flatten(3)
    if actions.shape[-1] == 1:
        advantages = seen.over_tokens(z_scores(rollout.rewards, -1))
        moved = torch.zeros_like(advantages)
    else:
        values = prefix_values(rollout.rewards, actions)
        advantages = tempo_advantages(rollout.rewards, actions).view_as(rollout.actions)
        moved = (values.diff(dim=-1) != 0).float().view_as(rollout.actions)
    weights = pg_weights(seen.logprobs, rollout.behaviour, advantages, own.cap)
    return weighted(
        seen,
        weights,
        adv_abs_mean=advantages.abs(),
        td_nonzero_frac=moved,
        iw_mean=importance_weights(seen.logprobs, rollout.behaviour, own.cap),
    )


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
