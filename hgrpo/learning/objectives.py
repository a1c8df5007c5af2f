"""Objectives: pure functions of per-token tensors.

All tensors are float [N], one entry per sampled token. Each function returns per-token terms to be
minimised or diagnostics; how terms are averaged is `token_weights`' business.
"""

from typing import Literal

import torch
from torch import Tensor

Reduction = Literal["token", "sequence"]


def ppo_clip(
    logprobs: Tensor,
    behaviour: Tensor,
    advantages: Tensor,
    clip_low: float,
    clip_high: float,
) -> Tensor:
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) with r = exp(logprobs - behaviour).

    Schulman et al. 2017; clip_high > clip_low is DAPO's clip-higher (Yu et al. 2025).
    """
    ratio = torch.exp(logprobs - behaviour)
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def kl_k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """exp(d) - 1 - d with d = reference - logprobs: Schulman's k3 estimate of KL(policy || ref).

    Never negative, unbiased under samples of the policy, 0 at equality.
    """
    d = reference - logprobs
    return torch.expm1(d) - d


def importance_weights(old: Tensor, behaviour: Tensor, cap: float) -> Tensor:
    """min(exp(old - behaviour), cap): what a token sampled elsewhere counts for in the loss.

    Truncated importance sampling (Ionides 2008; for samplers that are not quite the trainer, Yao et
    al. 2025). No gradient flows through it.

    Args:
        old: log-probs by the trainer, of the weights that played.
        behaviour: log-probs by the engine that sampled.
        cap: largest weight.
    """
    return torch.exp(old - behaviour).clamp(max=cap).detach()


def truncated_share(old: Tensor, behaviour: Tensor, cap: float) -> Tensor:
    """Share of tokens whose importance weight the cap cuts (a scalar)."""
    return (torch.exp(old - behaviour) > cap).float().mean()


def token_weights(sequence_lengths: Tensor, reduction: Reduction) -> Tensor:
    """Weights [N] that turn per-token terms into a loss by a plain sum; they add up to 1.

    Args:
        sequence_lengths: int64 [B], sampled tokens of each sequence of the whole minibatch, so
            that the loss does not depend on how it is cut into micro-batches.
        reduction: `token`: every token counts the same (long trajectories weigh more);
            `sequence`: every trajectory counts the same.
    """
    lengths = sequence_lengths.double()
    if reduction == "token":
        weights = torch.ones_like(lengths) / lengths.sum()
    else:
        weights = 1.0 / (lengths * (lengths > 0).sum())
    return torch.repeat_interleave(weights, sequence_lengths).float()


def clip_fraction(
    logprobs: Tensor,
    behaviour: Tensor,
    advantages: Tensor,
    clip_low: float,
    clip_high: float,
) -> Tensor:
    """Share of tokens whose gradient the clip removes (a scalar)."""
    ratio = torch.exp(logprobs - behaviour)
    high = (advantages > 0) & (ratio > 1.0 + clip_high)
    low = (advantages < 0) & (ratio < 1.0 - clip_low)
    return (high | low).float().mean()


def effective_sample_share(logprobs: Tensor, behaviour: Tensor) -> Tensor:
    """Kish's effective sample size of the importance ratios over N: (sum r)^2 / (N sum r^2)."""
    ratio = torch.exp(logprobs - behaviour)
    return ratio.sum().square() / (len(ratio) * ratio.square().sum())
