"""Per-token estimates of the KL divergence. Tensors are float, of equal shapes."""

from collections.abc import Callable, Mapping
from typing import Literal

from hgrpo.formulas.tensors import Tensor, check_shapes, torch

KlForm = Literal["k2", "k3", "k3_k2_gradient", "k3_ratio"]


def kl_k2(logprobs: Tensor, reference: Tensor) -> Tensor:
    """d^2 / 2 with d = logprobs - reference, in nats.

    It is a biased estimate of KL(policy || reference). However, its gradient, d times the gradient
    of the log-prob, is unbiased if the policy sampled the tokens. See `kl_k3` for the source.
    """
    check_shapes(logprobs, reference)
    return 0.5 * (logprobs - reference).square()


def kl_k3_k2_gradient(logprobs: Tensor, reference: Tensor) -> Tensor:
    """The value of `kl_k3` with the gradient of `kl_k2`. Both are unbiased on-policy.

    In contrast, the expected gradient of `kl_k3` is the gradient of KL(reference || policy).
    """
    square = kl_k2(logprobs, reference)
    return kl_k3(logprobs, reference).detach() + square - square.detach()


def kl_k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """exp(d) - 1 - d with d = reference - logprobs: the k3 estimate of KL(policy || reference).

    The estimate (in nats) is at least 0 for every token, and 0 if both log-probs are equal. It is
    unbiased if the policy sampled the tokens. See Schulman 2020, "Approximating KL Divergence",
    http://joschu.net/blog/kl-approx.html.
    """
    check_shapes(logprobs, reference)
    d = reference - logprobs
    return torch.expm1(d) - d


# Maps values of `training.kl.form` to estimators, except `k3_ratio` (see `kl_penalty`).
KL_FORMS: Mapping[KlForm, Callable[[Tensor, Tensor], Tensor]] = {
    "k2": kl_k2,
    "k3": kl_k3,
    "k3_k2_gradient": kl_k3_k2_gradient,
}


def kl_penalty(form: KlForm, logprobs: Tensor, reference: Tensor, behaviour: Tensor) -> Tensor:
    """The configured KL penalty of each token, in nats.

    `k3_ratio` is `kl_k3` times exp(logprobs - behaviour), with gradients through both factors. If
    `behaviour` sampled the tokens, this estimate of KL(policy || reference) and its gradient are
    unbiased, even after optimiser steps (DeepSeek-AI 2025, "DeepSeek-V3.2",
    https://arxiv.org/abs/2512.02556). In TRL, this option is called `use_bias_correction_kl`.
    """
    if form != "k3_ratio":
        return KL_FORMS[form](logprobs, reference)
    check_shapes(logprobs, behaviour)
    return (logprobs - behaviour).exp() * kl_k3(logprobs, reference)
