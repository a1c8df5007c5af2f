"""The divergences of distillation by hand: exact, over a part of the vocabulary, sampled."""

import math

import pytest
import torch

from hgrpo.formulas.distillation import (
    mass,
    membership,
    overlap_at_k,
    renormalised_reverse_kl,
    rewards_to_go,
    support_mask,
    tail_reverse_kl,
    teacher_rewards,
    top_k,
    truncated_forward_kl,
    truncated_reverse_kl,
)
from hgrpo.formulas.full_kl import entropy, forward_kl, reverse_kl

LN2 = math.log(2)
P = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64).log()
Q = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64).log()
FIRST_TWO = torch.tensor([True, True, False])
NONE, ALL = torch.zeros(3, dtype=torch.bool), torch.ones(3, dtype=torch.bool)
PARTIAL = (
    truncated_reverse_kl,
    renormalised_reverse_kl,
    tail_reverse_kl,
    truncated_forward_kl,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (reverse_kl(P, Q), 0.25 * LN2),
        (reverse_kl(Q, P), 0.25 * LN2),
        (entropy(P), 1.5 * LN2),
        (forward_kl(P, P), 0.0),
        # 1/2 ln 2 - 1/4 ln 2, and the third token has equal log-probs.
        (truncated_reverse_kl(P, Q, FIRST_TWO), 0.25 * LN2),
        (truncated_reverse_kl(P, Q, ~FIRST_TWO), 0.0),
        (truncated_reverse_kl(P, Q, torch.tensor([False, True, True])), -0.25 * LN2),
        (truncated_forward_kl(P, Q, torch.tensor([True, False, True])), -0.25 * LN2),
        # Given the first two, p is 2/3, 1/3 and q is 1/3, 2/3.
        (renormalised_reverse_kl(P, Q, FIRST_TWO), LN2 / 3),
        (renormalised_reverse_kl(P, Q, torch.tensor([True, False, False])), 0.0),
        # 1/2 for the first token and 1/2 for the others, against 1/4 and 3/4.
        (
            tail_reverse_kl(P, Q, torch.tensor([True, False, False])),
            0.5 * LN2 + 0.5 * math.log(2 / 3),
        ),
        (mass(P, FIRST_TWO), 0.75),
    ],
)
def test_divergences_by_hand(value, expected):
    assert value.item() == pytest.approx(expected)


@pytest.mark.parametrize("divergence", PARTIAL, ids=lambda each: each.__name__)
def test_over_the_whole_vocabulary_they_are_exact_and_over_nothing_they_are_zero(divergence):
    torch.manual_seed(0)
    logits, teacher = torch.randn(50, 7), torch.randn(50, 7).log_softmax(-1)
    exact = forward_kl if divergence is truncated_forward_kl else reverse_kl

    def values_and_gradient(loss):
        leaf = logits.clone().requires_grad_()
        values = loss(leaf.log_softmax(-1))
        return values.detach(), torch.autograd.grad(values.sum(), leaf)[0]

    whole = torch.ones(50, 7, dtype=torch.bool)
    partial = values_and_gradient(lambda student: divergence(student, teacher, whole))
    right = values_and_gradient(lambda student: exact(student, teacher))
    for one, other in zip(partial, right, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    empty = values_and_gradient(lambda student: divergence(student, teacher, ~whole))
    assert all(each.abs().max() < 1e-6 for each in empty)


def test_only_the_truncated_form_is_lowered_by_a_leak():
    """From the teacher itself: where does each form send the probability of the support?"""
    drift = {}
    for divergence in PARTIAL:
        logits = P.clone().requires_grad_()
        student = logits.log_softmax(-1)
        (slope,) = torch.autograd.grad(divergence(student, P, FIRST_TWO), logits)
        held = mass((logits - 0.01 * slope).log_softmax(-1), FIRST_TWO) - 0.75
        drift[divergence] = round(held.item() * 1e5)
    assert drift[truncated_reverse_kl] < 0
    assert drift[renormalised_reverse_kl] == drift[tail_reverse_kl] == 0
    assert drift[truncated_forward_kl] > 0


def test_a_tail_is_a_lower_bound_of_the_exact_divergence():
    torch.manual_seed(1)
    student, teacher = torch.randn(2, 100, 9).log_softmax(-1)
    for k in range(1, 9):
        bound = tail_reverse_kl(student, teacher, top_k(student, k))
        assert (bound <= reverse_kl(student, teacher) + 1e-6).all() and (bound > -1e-6).all()


def test_supports_by_hand():
    student = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    teacher = torch.tensor([0.1, 0.1, 0.2, 0.6]).log()
    masks = {
        support: support_mask(student, teacher, 2, support).tolist()
        for support in ("student", "teacher", "intersection")
    }
    assert masks["student"] == [True, True, False, False]
    assert masks["teacher"] == [False, False, True, True]
    assert masks["intersection"] == [False] * 4
    assert top_k(teacher, 3).tolist() == [True, False, True, True]


def test_ties_count_with_their_chance():
    teacher = torch.tensor([0.1, 0.7, 0.1, 0.1]).log()
    assert membership(teacher, 2).tolist() == pytest.approx([1 / 3, 1, 1 / 3, 1 / 3])
    assert membership(teacher, 4).tolist() == [1.0] * 4
    sure = torch.tensor([0.3, 0.4, 0.2, 0.1]).log()
    assert overlap_at_k(sure, teacher, 1).item() == 1.0
    assert overlap_at_k(sure, teacher, 2).item() == pytest.approx((1 + 1 / 3) / 2)
    misses = torch.tensor([0.4, 0.1, 0.3, 0.2]).log()
    assert overlap_at_k(misses, teacher, 2).item() == pytest.approx(1 / 3)
    # Names of tokens do not matter.
    order = torch.tensor([2, 0, 3, 1])
    mixed = overlap_at_k(misses[order], teacher[order], 2)
    assert mixed.item() == pytest.approx(overlap_at_k(misses, teacher, 2).item())
    # Without ties it is the common share of the two sets.
    torch.manual_seed(2)
    one, other = torch.randn(2, 200, 6)
    common = (top_k(one, 3) & top_k(other, 3)).sum(-1) / 3
    assert torch.allclose(overlap_at_k(one, other, 3), common)


def test_the_sampled_rewards_mean_is_the_divergence():
    rewards = teacher_rewards(P, Q)
    assert -(P.exp() * rewards).sum().item() == pytest.approx(reverse_kl(P, Q).item())
    assert rewards_to_go(torch.tensor([1.0, 2.0, 4.0])).tolist() == [7.0, 6.0, 4.0]


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="shapes"):
        reverse_kl(P, Q[:2])
    with pytest.raises(ValueError, match="shapes"):
        truncated_reverse_kl(P, Q, NONE[:2])
    assert truncated_reverse_kl(P, Q, ALL).item() == pytest.approx(0.25 * LN2)
