"""Exact KL divergences and entropies of the next-token distributions of a student and a teacher.

Arguments are log-probs [..., V] over the whole vocabulary, in nats; results have shape [...]. The
loss of on-policy distillation is the reverse KL at prefixes sampled by the student: Agarwal et al.
2024, "On-Policy Distillation of Language Models", https://arxiv.org/abs/2306.13649.
"""

from hgrpo.formulas.tensors import Tensor, check_shapes, torch


def entropy_of(probabilities: Tensor) -> Tensor:
    """-sum p log p, in nats."""
    return torch.special.entr(probabilities).sum(-1)


def collision_probability(logprobs: Tensor) -> Tensor:
    """sum p^2, the probability that two independent draws are the same action; no gradient.

    The original sandbox uses it as a baseline, because it would be the expected reward of an
    action if the correct action were drawn from the policy.
    """
    return logprobs.detach().exp().square().sum(-1)


def reverse_kl(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(student || teacher) = sum p (log p - log q)."""
    check_shapes(student, teacher)
    return (student.exp() * (student - teacher)).sum(-1)


def forward_kl(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(teacher || student) = sum q (log q - log p)."""
    return reverse_kl(teacher, student)


def entropy(logprobs: Tensor) -> Tensor:
    """-sum p log p."""
    return entropy_of(logprobs.exp())
