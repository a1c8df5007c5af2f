"""Entries of a step's log row about rollouts, advantages and optimiser steps."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from hgrpo.formulas.kl import kl_k3
from hgrpo.learning.advantages import advantage_shares
from hgrpo.learning.batch import GroupAdvantages
from hgrpo.learning.chosen import flat, spread_of_returns
from hgrpo.learning.filters.batch import mean_deviation
from hgrpo.learning.settings import TrainingConfig
from hgrpo.trajectories.trajectory import Trajectory

# Diagnostics that are None without optimiser steps.
STEP_DIAGNOSTICS = (
    *("policy_loss", "kl_term", "entropy_term", "total_loss", "grad_norm", "entropy"),
    *("ratio_mean", "ratio_max", "clip_fraction", "ess"),
    *("mismatch_mean", "mismatch_max", "mismatch_kl", "importance_mean", "importance_truncated"),
)
# Each of these diagnostics of a minibatch is a sum over its micro-batches.
SUMS = ("policy_loss", "kl_term", "entropy_term", "entropy", "clip_fraction")

# Inputs of `advantages.size_caution`.
SIZES = (
    *("turn_share", "top_share", "offset_share"),
    *("max_abs_credit", "mean_abs_traj_adv", "mean_abs_turn_adv"),
)


def rollout_row(groups: Sequence[Sequence[Trajectory]]) -> dict:
    """Log entries: rewards and counts of a step's groups of trajectories."""
    played = flat(groups)
    returns = np.array([trajectory.env_return for trajectory in played])
    turns = sum(len(trajectory.turns) for trajectory in played)
    return {
        "mean_reward": float(returns.mean()),
        "std_reward": float(returns.std()),
        "success_rate": sum(t.success for t in played) / len(played),
        "n_turns": turns,
        "mean_turns": turns / len(played),
        "completed": sum(not t.truncated for t in played),
        "truncated": sum(t.truncated for t in played),
        "context_overflow": sum(t.context_overflow for t in played),
        "n_trajectories": len(played),
        "n_groups": len(groups),
        "n_action_tokens": sum(t.action_tokens for t in played),
        "n_forward_tokens": sum(len(t.token_ids) for t in played),
        "inadmissible_share": sum(t.inadmissible for t in played) / turns,
        "inadmissible": sum(t.inadmissible for t in played),
        "overlong": sum(t.overlong for t in played),
        "empty": sum(t.empty for t in played),
    }


def spread_row(groups: Sequence[Sequence[Trajectory]], training: TrainingConfig) -> dict:
    """Log entries: means over groups of the sample standard deviations of returns and of success.

    Penalties make the returns of failed trajectories differ, but do not affect the second entry.
    """
    successes = [np.array([trajectory.success for trajectory in group]) for group in groups]
    return {
        "return_deviation": spread_of_returns(groups, training),
        "success_deviation": mean_deviation(successes),
    }


def trained_row(trained: Sequence[np.ndarray]) -> dict:
    """Log entries: numbers of groups and trajectories in the update, from G arrays bool [K]."""
    used = [int(group.sum()) for group in trained]
    return {"n_trained_groups": sum(map(bool, used)), "n_trained_trajectories": sum(used)}


def advantage_row(
    groups: Sequence[Sequence[Trajectory]], advantages: Sequence[GroupAdvantages]
) -> dict:
    """Log entries: numbers of dead groups and of groups with flat credit, and sizes of advantages.

    `advantages` contains the groups' advantages before blending. `mean_abs_token_adv` is a mean of
    blended advantages, which are stored in the turns of `groups`.
    """
    played = flat(groups)
    turns = [turn for trajectory in played for turn in trajectory.turns]
    per_token = np.concatenate([np.full(t.span[1] - t.span[0], t.advantage) for t in turns])
    per_turn = np.concatenate([row for group in advantages for row in group.turns])
    blended = [np.array([turn.advantage for turn in t.turns]) for t in played]
    per_trajectory = np.concatenate([group.trajectory for group in advantages])
    return {
        "dead_groups": sum(group.dead for group in advantages),
        "flat_credit_groups": sum(group.flat for group in advantages),
        **advantage_shares(blended),
        "max_abs_credit": max(abs(turn.credit) for turn in turns),
        "mean_abs_traj_adv": float(np.abs(per_trajectory).mean()),
        "mean_abs_turn_adv": float(np.abs(per_turn).mean()),
        "mean_abs_token_adv": float(np.abs(per_token).mean()),
    }


def over_steps(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average the diagnostics of steps, but take the max of `ratio_max` and the min of `ess`."""
    row = {name: sum(step[name] for step in steps) / len(steps) for name in steps[0]}
    row["ratio_max"] = max(step["ratio_max"] for step in steps)
    row["ess"] = min(step["ess"] for step in steps)
    return row


def mismatch(difference: Tensor) -> dict[str, float]:
    """Diagnostics of `difference` [N], the trainer's log-probs minus the engine's log-probs.

    `mismatch_kl` is the k3 estimate of KL(engine || trainer) per token.
    """
    return {
        "mismatch_mean": float(difference.abs().mean()),
        "mismatch_max": float(difference.abs().max()),
        "mismatch_kl": float(kl_k3(torch.zeros_like(difference), difference).mean()),
    }
