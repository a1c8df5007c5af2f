import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.formulas.clip import clip_fraction, dual_clip, ppo_clip
from hgrpo.formulas.importance import (
    effective_sample_share,
    importance_weights,
    truncated_share,
)
from hgrpo.formulas.kl import kl_k3
from hgrpo.formulas.reduction import token_weights
from hgrpo.learning.settings import KlConfig


def log(*values: float) -> torch.Tensor:
    return torch.log(torch.tensor(values))


def test_ppo_clip_by_hand():
    # ratios 2, 2, 0.5, 0.5 with advantages +1, -1, +1, -1 and a clip of 0.2
    terms = ppo_clip(log(2, 2, 0.5, 0.5), log(1, 1, 1, 1), torch.tensor([1.0, -1, 1, -1]), 0.2, 0.2)
    assert terms.tolist() == pytest.approx([-1.2, 2.0, -0.5, 0.8])


def test_clip_higher_moves_only_the_upper_bound():
    terms = ppo_clip(log(2, 0.5), log(1, 1), torch.tensor([1.0, -1]), 0.2, 0.28)
    assert terms.tolist() == pytest.approx([-1.28, 0.8])


def test_gradient_vanishes_where_the_clip_binds():
    logprobs = log(2, 1.1).requires_grad_()
    ppo_clip(logprobs, log(1, 1), torch.tensor([1.0, 1.0]), 0.2, 0.2).sum().backward()
    assert logprobs.grad.tolist() == pytest.approx([0.0, -1.1])


def test_kl_k3_by_hand():
    # d = ln 2: 2 - 1 - ln 2
    assert kl_k3(log(0.25), log(0.5)).item() == pytest.approx(1 - math.log(2))


@given(st.floats(-8, -1e-3), st.floats(-8, -1e-3))
def test_kl_k3_is_not_negative_and_zero_only_at_equality(new, reference):
    value = kl_k3(torch.tensor([new]), torch.tensor([reference])).item()
    assert value >= 0
    assert (value < 1e-6) == (abs(new - reference) < 2e-3) or abs(new - reference) < 2e-3


def test_kl_gradient_pulls_towards_the_reference():
    logprobs = log(0.25).requires_grad_()
    kl_k3(logprobs, log(0.5)).sum().backward()
    # d/dnew of exp(ref - new) - 1 - (ref - new) is 1 - exp(ref - new) = 1 - 2
    assert logprobs.grad.item() == pytest.approx(-1.0)


def test_token_weights_by_hand():
    lengths = torch.tensor([1, 3])
    assert token_weights(lengths, "token").tolist() == pytest.approx([0.25] * 4)
    assert token_weights(lengths, "sequence").tolist() == pytest.approx([0.5] + [1 / 6] * 3)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.sampled_from(["token", "sequence"]),
)
def test_token_weights_add_up_to_one(lengths, reduction):
    weights = token_weights(torch.tensor(lengths), reduction)
    assert len(weights) == sum(lengths)
    assert weights.sum().item() == pytest.approx(1.0, abs=1e-5)


def test_clip_fraction_counts_binding_tokens():
    share = clip_fraction(
        log(2, 2, 0.5, 0.5), log(1, 1, 1, 1), torch.tensor([1.0, -1, 1, -1]), 0.2, 0.2
    )
    assert share.item() == 0.5


def test_effective_sample_share_by_hand():
    # ratios 1 and 3: 16 / (2 * 10)
    assert effective_sample_share(log(1, 3), log(1, 1)).item() == pytest.approx(0.8)


def test_importance_weights_by_hand():
    # ratios of trainer to engine 0.5 / 0.25, 0.2 / 0.4, 0.9 / 0.1 under a cap of 3
    old, behaviour = log(0.5, 0.2, 0.9).requires_grad_(), log(0.25, 0.4, 0.1)
    weights = importance_weights(old, behaviour, 3.0)
    assert weights.tolist() == pytest.approx([2.0, 0.5, 3.0])
    assert not weights.requires_grad
    assert truncated_share(old, behaviour, 3.0).item() == pytest.approx(1 / 3)
    assert truncated_share(old, behaviour, 1.5).item() == pytest.approx(2 / 3)


def test_engine_and_trainer_that_agree_weigh_nothing_anew():
    same = log(0.3, 0.7)
    assert importance_weights(same, same, 2.0).tolist() == [1.0, 1.0]
    assert truncated_share(same, same, 1.0).item() == 0.0


@pytest.mark.parametrize(
    ("observed", "expected"),
    [(0.2, 0.06), (0.151, 0.06), (0.15, 0.04), (0.05, 0.04), (0.01, 0.04 / 1.5)],
)
def test_the_coefficient_moves_only_outside_its_band(observed, expected):
    assert KlConfig(target=0.1).adapted(0.04, observed) == pytest.approx(expected)


def test_the_coefficient_stays_within_bounds_and_off_stays_off():
    assert KlConfig(target=0.1, maximum=1.0).adapted(0.9, 5.0) == 1.0
    assert KlConfig().adapted(0.0, 5.0) == 0.0
    assert KlConfig(adaptive=False).adapted(0.3, 5.0) == 0.3


def test_tensors_of_different_shapes_are_refused():
    one, two = torch.zeros(3), torch.zeros(3, 1)
    for call in (
        lambda: ppo_clip(one, two, one, 0.2, 0.2),
        lambda: clip_fraction(one, one, two, 0.2, 0.2),
        lambda: kl_k3(one, two),
        lambda: importance_weights(one, two, 2.0),
        lambda: effective_sample_share(one, two),
    ):
        with pytest.raises(ValueError, match=r"shapes \[N\], got \[\(3,\), \(3, 1\)\]"):
            call()
    with pytest.raises(ValueError, match=r"expected \[B\], got \(3, 1\)"):
        token_weights(two.long(), "token")


def test_dual_clip_by_hand():
    # ratios 5, 5, 2, 0.5 with advantages -1, +1, -1, -1: only the first is beyond 3
    terms = dual_clip(
        log(5, 5, 2, 0.5), log(1, 1, 1, 1), torch.tensor([-1.0, 1, -1, -1]), 0.2, 0.28, 3.0
    )
    assert terms.tolist() == pytest.approx([3.0, -1.28, 2.0, 0.8])


def test_the_constant_reduction_counts_tokens_not_trajectories():
    weights = token_weights(torch.tensor([1, 3]), "constant", 10)
    assert weights.tolist() == pytest.approx([0.05] * 4)
