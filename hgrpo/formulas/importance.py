"""Importance weights and their statistics. Tensors are float, of equal shapes."""

from hgrpo.formulas.tensors import Tensor, check_shapes, torch

# Log-ratios are clamped to [-20, 20]. Larger ones occur only for unrelated policies.
_LARGEST_LOG_RATIO = 20.0


def ratios(logprobs: Tensor, behaviour: Tensor) -> Tensor:
    """exp(logprobs - behaviour) without a gradient; the exponent is clamped to +-20."""
    check_shapes(logprobs, behaviour)
    bounded = (logprobs - behaviour).clamp(-_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO)
    return torch.exp(bounded).detach()


def importance_weights(old: Tensor, behaviour: Tensor, cap: float) -> Tensor:
    """min(exp(old - behaviour), cap): importance weights, truncated at `cap`.

    See Ionides 2008, "Truncated Importance Sampling", https://doi.org/10.1198/106186008X320456. The
    weights correct for differences between the engine's and the trainer's log-probs, as in Yao et
    al. 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training",
    https://fengyao.notion.site/off-policy-rl.

    `old` contains the trainer's log-probs before the first optimiser step, and `behaviour` contains
    the engine's log-probs. The result has no gradient.
    """
    check_shapes(old, behaviour)
    return torch.exp(old - behaviour).clamp(max=cap).detach()


def truncated_share(old: Tensor, behaviour: Tensor, cap: float) -> Tensor:
    """Fraction of tokens with an importance weight above `cap` before truncation, a scalar."""
    return (torch.exp(old - behaviour) > cap).float().mean()


def effective_sample_share(logprobs: Tensor, behaviour: Tensor) -> Tensor:
    """(sum r)^2 / (N sum r^2), a scalar in (0, 1], with r = exp(logprobs - behaviour).

    This is Kish's effective sample size, divided by N. See Elvira, Martino and Robert 2018,
    "Rethinking the Effective Sample Size", https://arxiv.org/abs/1809.04129.
    """
    check_shapes(logprobs, behaviour)
    ratio = torch.exp(logprobs - behaviour)
    return ratio.sum().square() / (len(ratio) * ratio.square().sum())
