"""Surprise, a teacher's reward, gated imitation and mixed groups, by hand."""

import math

import pytest
import torch

from hgrpo.formulas.group import mixed_rate
from hgrpo.formulas.pedagogy import (
    additive_reward,
    learnability,
    product_reward,
    spike,
    surprisal_gates,
    surprise_gaps,
    weighted_imitation,
)

# One token in three would surprise.
GAPS = torch.tensor([[0.0, 0.3, 3.0], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    ("beta", "expected"), [(1e-3, [1.1, 1.0]), (500.0, [3.0, 1.0])], ids=["mean", "largest"]
)
def test_a_spike_lies_between_the_mean_gap_and_the_largest(beta, expected):
    assert spike(GAPS, beta).tolist() == pytest.approx(expected, abs=3e-3)


def test_a_spike_by_hand():
    # log((1 + 9) / 2) / 2
    assert spike(torch.tensor([0.0, math.log(3)]), 2.0).item() == pytest.approx(math.log(5) / 2)


def test_what_the_student_would_have_done_is_wholly_learnable():
    table = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    gaps = surprise_gaps(table, table.amax(-1))
    assert gaps.abs().max() == 0
    assert learnability(spike(gaps, 5.0), 0.5).tolist() == pytest.approx([1.0] * 4)
    other = surprise_gaps(table, table[..., 0])
    assert (other >= 0).all() and (learnability(spike(other, 5.0), 0.5) < 1).any()


def test_only_the_additive_reward_pays_for_easy_failures():
    success, penalty = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.0, 2.0, 2.0])
    assert product_reward(success, penalty, 0.5).tolist() == pytest.approx([0, 0, math.exp(-1)])
    assert additive_reward(success, penalty, 0.6).tolist() == pytest.approx([0.0, -1.2, -0.2])


def test_gates_and_the_loss_that_they_weigh():
    uniform = torch.full((2, 3), -math.log(7))
    assert surprisal_gates(uniform, 4.0, -2.5).flatten().tolist() == pytest.approx(
        [0.902] * 6, abs=5e-4
    )
    logprobs = torch.tensor([[-1.0, -2.5]])
    gates = surprisal_gates(logprobs, 4.0, -2.5)
    assert gates.tolist()[0] == pytest.approx([1 / (1 + math.exp(-6)), 0.5])
    assert weighted_imitation(logprobs, torch.tensor([[3.0, 1.0]])).item() == pytest.approx(5.5 / 4)


def test_gates_carry_no_gradient():
    logprobs = torch.tensor([[-1.0, -3.0]], requires_grad=True)
    gates = surprisal_gates(logprobs, 4.0, -2.5)
    weighted_imitation(logprobs, gates).sum().backward()
    expected = -gates / gates.sum()
    assert logprobs.grad.tolist()[0] == pytest.approx(expected.tolist()[0])


def test_how_often_a_group_is_mixed():
    # Two rollouts at q = 0.3: 2 q (1 - q). Eight at 1/7: 1 - (1 + 6^8) / 7^8.
    assert mixed_rate(torch.tensor(0.3), 2).item() == pytest.approx(0.42)
    assert mixed_rate(torch.tensor(1 / 7), 8).item() == pytest.approx(1 - (1 + 6**8) / 7**8)
    assert mixed_rate(torch.tensor([0.0, 1.0]), 8).tolist() == [0, 0]
