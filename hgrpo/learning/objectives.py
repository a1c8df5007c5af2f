"""Objectives: pure functions of per-token tensors.

Unless a docstring says otherwise, tensors are float [N], one entry per sampled token, and a
function raises ValueError if their shapes differ. A function returns per-token terms of a loss, or
a diagnostic. `token_weights` gives the weights with which a loss averages its terms.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from hgrpo.learning.settings import KlForm, Reduction


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


def dual_clip(
    logprobs: Tensor,
    behaviour: Tensor,
    advantages: Tensor,
    clip_low: float,
    clip_high: float,
    bound: float,
) -> Tensor:
    """`ppo_clip`, where a negative advantage costs at most `bound` times its size.

    Without the bound, a token that the policy has made much more probable since it was sampled
    dominates the loss. See Ye et al. 2020, "Mastering Complex Control in MOBA Games with Deep
    Reinforcement Learning", equation 5, https://arxiv.org/abs/1912.09729.
    """
    terms = ppo_clip(logprobs, behaviour, advantages, clip_low, clip_high)
    return torch.where(advantages < 0, torch.minimum(terms, -bound * advantages), terms)


def kl_k2(logprobs: Tensor, reference: Tensor) -> Tensor:
    """d^2 / 2 with d = logprobs - reference, in nats.

    As an estimate of KL(policy || reference) it is biased. Its gradient, d times that of the
    log-prob, is unbiased if the tokens were sampled from the policy. See `kl_k3` for the source.
    """
    _check_shapes(logprobs, reference)
    return 0.5 * (logprobs - reference).square()


def kl_k3_k2_gradient(logprobs: Tensor, reference: Tensor) -> Tensor:
    """The value of `kl_k3` with the gradient of `kl_k2`: both are unbiased on the policy's tokens.

    The gradient of `kl_k3` itself, in expectation, is that of the other divergence,
    KL(reference || policy).
    """
    square = kl_k2(logprobs, reference)
    return kl_k3(logprobs, reference).detach() + square - square.detach()


def kl_k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """exp(d) - 1 - d with d = reference - logprobs: the k3 estimate of KL(policy || reference).

    Each term is in nats and at least 0. It is 0 where the two policies agree. The estimate is
    unbiased if the tokens were sampled from the policy. See Schulman 2020, "Approximating KL
    Divergence", http://joschu.net/blog/kl-approx.html.
    """
    _check_shapes(logprobs, reference)
    d = reference - logprobs
    return torch.expm1(d) - d


def importance_weights(old: Tensor, behaviour: Tensor, cap: float) -> Tensor:
    """min(exp(old - behaviour), cap): importance weights, truncated at `cap`.

    See Ionides 2008, "Truncated Importance Sampling", https://doi.org/10.1198/106186008X320456. The
    weights correct for the difference between engine and trainer, as in Yao et al. 2025, "Your
    Efficient RL Framework Secretly Brings You Off-Policy RL Training",
    https://fengyao.notion.site/off-policy-rl.

    `old` holds the trainer's log-probs before the first optimiser step; `behaviour` holds the
    engine's log-probs. The result carries no gradient.
    """
    _check_shapes(old, behaviour)
    return torch.exp(old - behaviour).clamp(max=cap).detach()


def truncated_share(old: Tensor, behaviour: Tensor, cap: float) -> Tensor:
    """Share of tokens whose importance weight exceeds `cap`: a scalar. Shapes are not checked."""
    return (torch.exp(old - behaviour) > cap).float().mean()


def token_weights(
    sequence_lengths: Tensor, reduction: Reduction, constant: int | None = None
) -> Tensor:
    """Weights [N] of the per-token terms. The loss is the weighted sum.

    With `token` every token counts the same, so long trajectories weigh more: the token-level loss
    of DAPO (https://arxiv.org/abs/2503.14476). With `sequence` every trajectory counts the same:
    the sample-level loss of GRPO (Shao et al. 2024, "DeepSeekMath",
    https://arxiv.org/abs/2402.03300). In both cases the weights add up to 1. With `constant` every
    token weighs 1 / (B constant), however long its trajectory is: the loss of Dr. GRPO (Liu et al.
    2025, "Understanding R1-Zero-Like Training", https://arxiv.org/abs/2503.20783).

    Args:
        sequence_lengths: int64 [B], the number of sampled tokens of each sequence. Pass the whole
            minibatch, so that the loss does not depend on how it is cut into micro-batches.
        constant: the divisor of the reduction `constant`.

    Raises:
        ValueError: `sequence_lengths` is not one-dimensional.
    """
    if sequence_lengths.dim() != 1:
        raise ValueError(f"sequence lengths of shape {tuple(sequence_lengths.shape)}, not [B]")
    lengths = sequence_lengths.double()
    if reduction == "token":
        weights = torch.ones_like(lengths) / lengths.sum()
    elif reduction == "constant":
        weights = torch.full_like(lengths, 1.0 / (len(lengths) * constant))
    else:
        weights = 1.0 / (lengths * (lengths > 0).sum())
    return torch.repeat_interleave(weights, sequence_lengths).float()


def clip_fraction(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, clip_low: float, clip_high: float
) -> Tensor:
    """Share of tokens whose gradient the clip sets to 0: a scalar. Arguments: see `ppo_clip`."""
    _check_shapes(logprobs, behaviour, advantages)
    ratio = torch.exp(logprobs - behaviour)
    high = (advantages > 0) & (ratio > 1.0 + clip_high)
    low = (advantages < 0) & (ratio < 1.0 - clip_low)
    return (high | low).float().mean()


def effective_sample_share(logprobs: Tensor, behaviour: Tensor) -> Tensor:
    """(sum r)^2 / (N sum r^2), a scalar in (0, 1], with r = exp(logprobs - behaviour).

    This is Kish's effective sample size, divided by N. See Elvira, Martino and Robert 2018,
    "Rethinking the Effective Sample Size", https://arxiv.org/abs/1809.04129.
    """
    _check_shapes(logprobs, behaviour)
    ratio = torch.exp(logprobs - behaviour)
    return ratio.sum().square() / (len(ratio) * ratio.square().sum())


# By the name that `training.kl.form` gives.
KL_FORMS: Mapping[KlForm, Callable[[Tensor, Tensor], Tensor]] = {
    "k2": kl_k2,
    "k3": kl_k3,
    "k3_k2_gradient": kl_k3_k2_gradient,
}


def _check_shapes(*tensors: Tensor) -> None:
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) > 1:
        raise ValueError(f"tensors of shapes {sorted(shapes)}; equal shapes [N] were expected")
