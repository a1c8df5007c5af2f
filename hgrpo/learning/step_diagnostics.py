"""Diagnostics of optimiser steps, for the log."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from hgrpo.learning.objectives.kl import kl_k3

# Diagnostics that are None when no step was taken.
STEP_DIAGNOSTICS = (
    *("policy_loss", "kl_term", "entropy_term", "total_loss", "grad_norm", "entropy"),
    *("ratio_mean", "ratio_max", "clip_fraction", "ess"),
    *("mismatch_mean", "mismatch_max", "mismatch_kl", "importance_mean", "importance_truncated"),
)
# Diagnostics of a minibatch that are sums over its micro-batches.
SUMS = ("policy_loss", "kl_term", "entropy_term", "entropy", "clip_fraction")


def over_steps(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Combine the steps' diagnostics: maximum of `ratio_max`, minimum of `ess`, mean of others."""
    row = {name: sum(step[name] for step in steps) / len(steps) for name in steps[0]}
    row["ratio_max"] = max(step["ratio_max"] for step in steps)
    row["ess"] = min(step["ess"] for step in steps)
    return row


def mismatch(difference: Tensor) -> dict[str, float]:
    """Diagnostics of `difference` [N], the trainer's log-probs minus the engine's.

    `mismatch_kl` is the mean k3 of KL(engine || trainer) per token.
    """
    return {
        "mismatch_mean": float(difference.abs().mean()),
        "mismatch_max": float(difference.abs().max()),
        "mismatch_kl": float(kl_k3(torch.zeros_like(difference), difference).mean()),
    }
