"""Per-token estimates of the KL divergence. Tensors are float, of equal shapes."""

from collections.abc import Callable, Mapping
from typing import Literal

from hgrpo.formulas.tensors import Tensor, check_shapes, torch

KlForm = Literal["k2", "k3", "k3_k2_gradient", "k3_ratio"]


def kl_k2(logprobs: Tensor, reference: Tensor) -> Tensor:
    """d^2 / 2 with d = logprobs - reference, in nats.

    As an estimate of KL(policy || reference) it is biased. Its gradient, d times the gradient of
    the log-prob, is unbiased if the policy sampled the tokens. See `kl_k3` for the source.
    """
    check_shapes(logprobs, reference)
    return 0.5 * (logprobs - reference).square()


def kl_k3_k2_gradient(logprobs: Tensor, reference: Tensor) -> Tensor:
    """The value of `kl_k3` with the gradient of `kl_k2`; both are unbiased on-policy.

    The gradient of `kl_k3` itself is, in expectation, the gradient of the reversed divergence
    KL(reference || policy).
    """
    square = kl_k2(logprobs, reference)
    return kl_k3(logprobs, reference).detach() + square - square.detach()


def kl_k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """exp(d) - 1 - d with d = reference - logprobs: the k3 estimate of KL(policy || reference).

    Each term is in nats and at least 0, and 0 if both log-probs are equal. The estimate is
    unbiased if the policy sampled the tokens. See Schulman 2020, "Approximating KL
    Divergence", http://joschu.net/blog/kl-approx.html.
    """
    check_shapes(logprobs, reference)
    d = reference - logprobs
    return torch.expm1(d) - d


# Estimators by `training.kl.form`, except `k3_ratio`, which is in `kl_penalty`.
KL_FORMS: Mapping[KlForm, Callable[[Tensor, Tensor], Tensor]] = {
    "k2": kl_k2,
    "k3": kl_k3,
    "k3_k2_gradient": kl_k3_k2_gradient,
}


def kl_penalty(form: KlForm, logprobs: Tensor, reference: Tensor, behaviour: Tensor) -> Tensor:
    """The configured KL penalty of each token, in nats.

    `k3_ratio` is `kl_k3` times exp(logprobs - behaviour), with the gradient of both factors. If
    `behaviour` sampled the tokens, its value and gradient are unbiased for KL(policy || reference),
    even after optimiser steps. See DeepSeek-AI 2025, "DeepSeek-V3.2",
    https://arxiv.org/abs/2512.02556. In TRL, this is `use_bias_correction_kl`.
    """
    if form != "k3_ratio":
        return KL_FORMS[form](logprobs, reference)
    check_shapes(logprobs, behaviour)
    return (logprobs - behaviour).exp() * kl_k3(logprobs, reference)
