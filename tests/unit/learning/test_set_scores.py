"""What sets are worth, and what their slots earned, by hand and by drawing weights."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.formulas.group import z_scores
from hgrpo.formulas.set_score import (
    best_scalar,
    drawn_set_score,
    exact_set_score,
    marginal_credit,
    slot_advantages,
)

HUNDREDTHS = st.integers(0, 100).map(lambda part: part / 100)
SETS = st.lists(st.tuples(HUNDREDTHS, HUNDREDTHS), min_size=2, max_size=6).map(torch.tensor)


@pytest.mark.parametrize(
    ("answers", "worth"),
    [
        ([(0.6, 0.6)], 0.6),
        ([(1.0, 0.0)], 0.5),
        # The better of t and 1 - t.
        ([(1.0, 0.0), (0.0, 1.0)], 0.75),
        # 0.6 between t = 0.4 and 0.6, and 0.8 on average outside.
        ([(1.0, 0.0), (0.6, 0.6), (0.0, 1.0)], 0.2 * 0.6 + 0.8 * 0.8),
        # The second answer is below the first everywhere.
        ([(0.6, 0.6), (0.3, 0.2)], 0.6),
        # Parallel lines: the upper one.
        ([(0.3, 0.2), (0.6, 0.5)], 0.55),
    ],
)
def test_a_set_is_worth_its_upper_envelope(answers, worth):
    assert exact_set_score(torch.tensor(answers)).item() == pytest.approx(worth, abs=1e-6)


@given(SETS)
def test_neither_order_nor_duplicates_change_a_set(answers):
    worth = exact_set_score(answers)
    assert exact_set_score(answers.flip(0)) == worth
    assert exact_set_score(torch.cat([answers[-1:], answers])) == worth
    # Mirrored rewards are worth the same to uniform weights.
    assert exact_set_score(answers.flip(1)) == worth


@given(SETS)
def test_the_exact_score_is_the_mean_over_many_weights(answers):
    place = (torch.arange(4000) + 0.5) / 4000
    drawn = drawn_set_score(answers, torch.stack([place, 1 - place], -1))
    assert exact_set_score(answers).item() == pytest.approx(drawn.item(), abs=1e-4)


def test_drawn_weights_by_hand():
    answers = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    weights = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    assert drawn_set_score(answers, weights).item() == pytest.approx((0.9 + 0.7) / 2)
    assert best_scalar(answers, torch.tensor([0.2, 0.8])).item() == pytest.approx(0.8)


def test_a_slot_is_credited_what_the_set_would_lose():
    answers = torch.tensor([[1.0, 0.0], [0.6, 0.6], [0.6, 0.6]])
    pair, single = exact_set_score(answers[:2]).item(), 0.6
    credit = marginal_credit(exact_set_score, answers)
    # A duplicate adds nothing, whichever of the two is left out.
    assert credit.tolist() == pytest.approx([pair - single, 0.0, 0.0], abs=1e-6)


def test_shared_credit_gives_the_z_scores_of_the_group():
    sets = torch.rand(2, 5, 4, 3, 2, generator=torch.Generator().manual_seed(0))
    score = partial(best_scalar, weights=torch.tensor([0.5, 0.5]))
    worth = score(sets)
    credit, expected = (
        each.unsqueeze(-1).expand(-1, -1, -1, 3) for each in (worth, z_scores(worth, -1))
    )
    assert torch.allclose(slot_advantages(credit), expected, atol=1e-5)


def test_advantages_of_marginal_credit_by_hand():
    # Slot 0 earns 1 or 3, slot 1 always 5; the deviation of -1, 1, 0, 0 is sqrt(1/2).
    advantages = slot_advantages(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
    assert advantages.flatten().tolist() == pytest.approx([-(2**0.5), 0, 2**0.5, 0], abs=1e-6)
    assert slot_advantages(torch.full((4, 3), 0.1)).abs().max() == 0
