"""Objectives: pure functions of per-token tensors.

Unless a docstring says otherwise, tensors are float [N], one entry per sampled token; shapes that
differ are a ValueError. A function returns per-token terms of a loss, or a diagnostic; the weights
that average the terms come from `token_weights`.
"""

from typing import Literal

import torch
from torch import Tensor

Reduction = Literal["token", "sequence"]


def ppo_clip(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) with r = exp(logprobs - behaviour).

    Schulman et al. 2017, "Proximal Policy Optimization Algorithms", equation 7,
    https://arxiv.org/abs/1707.06347. clip_high > clip_low is the clip-higher of Yu et al. 2025,
    "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    https://arxiv.org/abs/2503.14476.
    """
    _check_shapes(logprobs, behaviour, advantages)
    ratio = torch.exp(logprobs - behaviour)
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def kl_k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """exp(d) - 1 - d with d = reference - logprobs: the k3 estimate of KL(policy || reference).

    It is in nats and at least 0. It is 0 where the two policies agree, and unbiased if the policy
    drew the tokens. See Schulman 2020, "Approximating KL Divergence",
    http://joschu.net/blog/kl-approx.html.
    """
    _check_shapes(logprobs, reference)
    d = reference - logprobs
    return torch.expm1(d) - d


def importance_weights(old: Tensor, behaviour: Tensor, cap: float) -> Tensor:
    """min(exp(old - behaviour), cap): weights that correct for the gap from engine to trainer.

    Ionides 2008, "Truncated Importance Sampling", https://doi.org/10.1198/106186008X320456. Yao et
    al. 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training",
    https://fengyao.notion.site/off-policy-rl, use it between engine and trainer.

    `old` holds the trainer's log-probs under the weights that played; `behaviour` holds the
    engine's. The result carries no gradient.
    """
    _check_shapes(old, behaviour)
    return torch.exp(old - behaviour).clamp(max=cap).detach()


def truncated_share(old: Tensor, behaviour: Tensor, cap: float) -> Tensor:
    """Share of tokens whose importance weight the cap cuts: a scalar."""
    return (torch.exp(old - behaviour) > cap).float().mean()


def token_weights(sequence_lengths: Tensor, reduction: Reduction) -> Tensor:
    """Weights [N] of the per-token terms, whose weighted sum is the loss; they add up to 1.

    `token` is the token-level loss of DAPO (https://arxiv.org/abs/2503.14476), `sequence` the
    sample-level loss of GRPO (Shao et al. 2024, "DeepSeekMath", https://arxiv.org/abs/2402.03300).

    With `token` every token counts the same, so long trajectories weigh more; with `sequence` every
    trajectory counts the same.

    Args:
        sequence_lengths: int64 [B], sampled tokens of each sequence of the whole minibatch, so
            that the loss does not depend on how it is cut into micro-batches.

    Raises:
        ValueError: `sequence_lengths` is not one-dimensional.
    """
    if sequence_lengths.dim() != 1:
        raise ValueError(f"sequence lengths of shape {tuple(sequence_lengths.shape)}, not [B]")
    lengths = sequence_lengths.double()
    if reduction == "token":
        weights = torch.ones_like(lengths) / lengths.sum()
    else:
        weights = 1.0 / (lengths * (lengths > 0).sum())
    return torch.repeat_interleave(weights, sequence_lengths).float()


def clip_fraction(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """Share of tokens whose gradient the clip removes: a scalar; arguments as for `ppo_clip`."""
    _check_shapes(logprobs, behaviour, advantages)
    ratio = torch.exp(logprobs - behaviour)
    high = (advantages > 0) & (ratio > 1.0 + clip_high)
    low = (advantages < 0) & (ratio < 1.0 - clip_low)
    return (high | low).float().mean()


def effective_sample_share(logprobs: Tensor, behaviour: Tensor) -> Tensor:
    """(sum r)^2 / (N sum r^2), a scalar in (0, 1], with r = exp(logprobs - behaviour).

    Kish's effective sample size over N; see Elvira, Martino and Robert 2018, "Rethinking the
    Effective Sample Size", https://arxiv.org/abs/1809.04129.
    """
    _check_shapes(logprobs, behaviour)
    ratio = torch.exp(logprobs - behaviour)
    return ratio.sum().square() / (len(ratio) * ratio.square().sum())


def _check_shapes(*tensors: Tensor) -> None:
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) > 1:
        raise ValueError(f"tensors of shapes {sorted(shapes)}; equal shapes [N] were expected")
