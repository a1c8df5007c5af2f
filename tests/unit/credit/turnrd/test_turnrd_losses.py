"""TurnRD's losses against values computed by hand."""

import math

import pytest
import torch

from hgrpo.credit.turnrd import losses

MASK = torch.tensor([[True, True], [True, False]])


def test_value_loss_counts_turns_and_no_padding():
    values = torch.tensor([[1.0, 2.0], [3.0, 99.0]])
    targets = torch.tensor([[0.0, 2.0], [1.0, 0.0]])
    assert losses.value_loss(values, targets, MASK).item() == pytest.approx((1 + 0 + 4) / 3)


def test_rank_loss_by_hand():
    predicted, returns = torch.tensor([0.5, 0.45, 0.0]), torch.tensor([1.0, 0.0, 0.0])
    # Pairs (0, 1) and (0, 2): 0.1 - 0.05 and max(0, 0.1 - 0.5).
    assert losses.rank_loss(predicted, returns, 0.1).item() == pytest.approx(0.025)


def test_rank_loss_of_equal_returns_is_zero_with_a_gradient_of_zero():
    predicted = torch.tensor([0.5, 0.4], requires_grad=True)
    loss = losses.rank_loss(predicted, torch.ones(2), 0.1)
    loss.backward()
    assert loss.item() == 0 and not predicted.grad.any()


def test_prior_loss_is_zero_at_the_prior_and_uses_the_own_length():
    weights = torch.softmax(torch.tensor([0.0, 0.5]), -1)
    alpha = torch.stack([weights, torch.tensor([1.0, 0.0])])
    assert losses.prior_loss(alpha, MASK).item() == pytest.approx(0, abs=1e-6)
    swapped = torch.stack([weights.flip(0), torch.tensor([1.0, 0.0])])
    first, second = weights.flip(0), weights
    by_hand = sum(p * math.log(p / q) for p, q in zip(first.tolist(), second.tolist(), strict=True))
    assert losses.prior_loss(swapped, MASK).item() == pytest.approx(by_hand / 2, rel=1e-4)


def test_entropy_by_hand():
    alpha = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
    expected = [-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)), 0.0]
    assert losses.entropy(alpha, MASK).tolist() == pytest.approx(expected)


def test_a_positive_entropy_weight_makes_weights_sharper():
    scores = torch.tensor([[0.1, 0.0]], requires_grad=True)
    mask = torch.ones(1, 2, dtype=torch.bool)
    losses.entropy(scores.softmax(-1), mask).mean().backward()
    step = scores.detach() - scores.grad
    assert step.softmax(-1).max() > scores.softmax(-1).max()


def test_supervision_by_hand_and_gated():
    alpha = torch.tensor([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    targets = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    drawn = torch.tensor([[True, True, False], [True, False, False]])
    # Among the drawn turns alpha is 0.4 and 0.6.
    by_hand = -math.log(0.6)
    assert losses.supervision_loss(alpha, targets, drawn).item() == pytest.approx(by_hand)
    assert losses.supervision_loss(alpha, torch.zeros(2, 3), drawn).item() == 0


def test_supervision_does_not_move_the_weight_of_all_drawn_turns():
    scores = torch.tensor([[0.3, -0.2, 0.9]], requires_grad=True)
    targets, drawn = torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[True, True, False]])
    losses.supervision_loss(scores.softmax(-1), targets, drawn).backward()
    assert scores.grad[0, 2].item() == pytest.approx(0, abs=1e-7)
    assert scores.grad[0, 0] < 0 < scores.grad[0, 1]


def test_contrastive_loss_by_hand():
    hidden = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [5.0, 5.0]]])
    returns = torch.tensor([1.0, 0.0])
    # Two equal anchors, one orthogonal other turn: -log(e^2 / (e^2 + e^0)) at temperature 1/2.
    expected = -math.log(math.exp(2) / (math.exp(2) + 1))
    loss = losses.contrastive_loss(hidden, returns, MASK, 0.5).item()
    assert loss == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("returns", [[1.0, 1.0], [0.0, 0.0]])
def test_contrastive_loss_needs_a_success_and_a_failure(returns):
    hidden = torch.randn(2, 2, 3, generator=torch.Generator().manual_seed(0))
    assert losses.contrastive_loss(hidden, torch.tensor(returns), MASK, 0.1).item() == 0
