"""The pure functions of the update rules, by hand and by enumeration."""

import math

import pytest
import torch

from hgrpo.formulas.dg import dg_gates, dg_weights
from hgrpo.formulas.dg_variants import (
    entropy_guard,
    filtered_dg_weights,
    freshness,
    keep_probabilities,
    kondo_keep,
    mean_to_go,
    shrunk_advantages,
    uncertain_gates,
)
from hgrpo.formulas.group import centred, leave_one_out, z_scores
from hgrpo.formulas.importance import ratios
from hgrpo.formulas.pg import pg_weights, policy_gradient, traj_pg_weights
from hgrpo.formulas.pg_variants import (
    log_growth_weights,
    maxrl_advantages,
    mirror_descent,
    prefix_values,
    tempo_advantages,
)
from hgrpo.formulas.ratio_rules import aspo_weights, r2vpo_weights
from hgrpo.formulas.tpo import (
    group_pg,
    target_cross_entropy,
    tpo_target,
    unanchored_target,
)


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


# Tokens with ratios 2, 2, 1/2, 1/2 and advantages 1, -1, 1, -1; the policy's log-probs are ln 1/2.
NEW = tensor(*[math.log(0.5)] * 4)
OLD = tensor(*(math.log(p) for p in (0.25, 0.25, 1.0, 1.0)))
A = tensor(1, -1, 1, -1)
U = tensor(0, 0.5, 1, 0.25)
LN2 = math.log(2)
UP, DOWN = sigmoid(LN2), sigmoid(-LN2)
ONES = torch.ones(4, dtype=torch.float64)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (ratios(NEW, OLD), [2, 2, 0.5, 0.5]),
        (pg_weights(NEW, OLD, A, 1.5), [1.5, -1.5, 0.5, -0.5]),
        (traj_pg_weights(NEW, OLD, A, ONES, 10.0), [1, -1, 1, -1]),
        (traj_pg_weights(NEW, OLD, A, tensor(1, 1, 0, 0), 10.0), [4, -4, 4, -4]),
        (traj_pg_weights(NEW, OLD, A, tensor(1, 1, 0, 0), 3.0), [3, -3, 3, -3]),
        (aspo_weights(NEW, OLD, A, 0.2, 0.28), [0.5, -2, 1.28, -0.8]),
        # r (A - 2 * 0.5 (r - 1))
        (r2vpo_weights(NEW, OLD, A, 0.5), [0, -4, 0.75, -0.25]),
        (r2vpo_weights(NEW, OLD, A, 0.0), [2, -2, 0.5, -0.5]),
        (dg_gates(NEW, A, 1.0), [UP, DOWN, UP, DOWN]),
        (dg_weights(NEW, A, 0.5), [sigmoid(2 * LN2), -sigmoid(-2 * LN2)] * 2),
        (
            uncertain_gates(NEW, A, U, 1.0, 2.0),
            [UP, sigmoid(-LN2 - 1), sigmoid(LN2 - 2)] + [sigmoid(-LN2 - 0.5)],
        ),
        (filtered_dg_weights(NEW, A, U, 1.0, 0.5), [UP, -DOWN, 0, -DOWN]),
        (
            dg_weights(NEW, shrunk_advantages(A, U, 2.0), 1.0)[1:3],
            [-sigmoid(-LN2 / 2) / 2] + [sigmoid(LN2 / 3) / 3],
        ),
        (entropy_guard(NEW, A, 4, 0.5), [0.875, 1, 0.875, 1]),
        (log_growth_weights(NEW, A, tensor(1, 0, 0, 1)), [2, -1, 1, -2]),
        (freshness(torch.tensor([0, 10]), 0.1), [1, math.exp(-1)]),
    ],
)
def test_weights_by_hand(weights, expected):
    assert weights.tolist() == pytest.approx(expected, rel=1e-6)
    assert not weights.requires_grad


def test_a_ratio_is_bounded_and_so_finite():
    assert ratios(tensor(0.0), tensor(-500.0)).item() == pytest.approx(math.exp(20))


def test_weights_carry_no_gradient_into_the_loss():
    logprobs = NEW.clone().requires_grad_()
    policy_gradient(logprobs, pg_weights(logprobs, OLD, A, 10.0)).sum().backward()
    assert logprobs.grad.tolist() == pytest.approx([-2, 2, -0.5, 0.5])


def test_group_advantages_by_hand():
    rewards = tensor(1, 0, 0, 1, 0.7, 0.7, 0.7, 0.7).view(2, 4)
    assert z_scores(rewards, -1)[0].tolist() == pytest.approx([1, -1, -1, 1])
    assert centred(rewards, -1)[0].tolist() == [0.5, -0.5, -0.5, 0.5]
    assert maxrl_advantages(rewards, -1)[0].tolist() == pytest.approx([1, -1, -1, 1])
    assert leave_one_out(rewards, -1)[0].tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1 / 3])


@pytest.mark.parametrize("advantages", [centred, z_scores, maxrl_advantages])
def test_equal_rewards_give_exact_zeros(advantages):
    # In float32 the mean of seven times 0.1 is not 0.1.
    rewards = torch.full((3, 7), 0.1)
    assert (rewards - rewards.mean(-1, keepdim=True)).abs().max() > 0
    assert not advantages(rewards, -1).any()


def test_kondo_keeps_the_share_it_is_given():
    delight = torch.randn(3, 200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for keep in (0.1, 0.5, 0.9):
        shares = keep_probabilities(delight, keep, 0.7).mean(1)
        assert shares.tolist() == pytest.approx([keep] * 3, abs=1e-3)
    assert kondo_keep(delight, torch.rand_like(delight), 1.0, 1.0).all()
    # No draw is low enough: only the most delightful sample passes, once, also among equals.
    alone = kondo_keep(delight, torch.ones_like(delight), 0.5, 1.0)
    assert alone.argmax(1).equal(delight.argmax(1)) and alone.sum(1).tolist() == [1, 1, 1]
    assert kondo_keep(torch.zeros(1, 4), torch.ones(1, 4), 0.5, 1.0).sum() == 1


def test_prefix_values_by_hand():
    rewards = tensor(1, 0, 0.5)
    actions = torch.tensor([[0, 1], [0, 2], [1, 1]])
    values = prefix_values(rewards, actions)
    assert values[0].tolist() == pytest.approx([0.5, 0.5, 1])
    assert values[1].tolist() == pytest.approx([0.5, 0.5, 0])
    assert values[2].tolist() == pytest.approx([0.5, 0.5, 0.5])


def test_tempo_telescopes_and_falls_back_to_grpo_off_the_branches():
    rewards = tensor(1, 0, 0, 1)
    apart = torch.tensor([[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]])
    changes = prefix_values(rewards, apart).diff(dim=-1)
    assert changes.sum(-1).tolist() == pytest.approx((rewards - 0.5).tolist())
    same = torch.tensor([[0, 1, 0], [0, 1, 1], [0, 1, 2], [0, 1, 3]])
    grpo = z_scores(rewards, -1)
    advantages = tempo_advantages(rewards, same)
    assert advantages[:, 0].tolist() == pytest.approx(grpo.tolist())
    assert advantages[:, 2].tolist() == pytest.approx((2 * grpo).tolist())
    assert not tempo_advantages(torch.full((4,), 0.3), same).any()


def test_mean_to_go_by_hand():
    correct = tensor(1, 0, 1, 1)
    assert mean_to_go(correct, ONES).tolist() == pytest.approx([0.75, 2 / 3, 1, 1])
    assert mean_to_go(correct, tensor(0, 1, 1, 0)).tolist() == pytest.approx([0.5, 0.5, 1, 0])


def test_the_gradient_of_tpo_is_policy_minus_target():
    scores = tensor(-1, -2, -0.5).requires_grad_()
    skills = tensor(1.2, -0.7, -0.5)
    target = tpo_target(scores.detach(), skills, 0.8, -1)
    target_cross_entropy(scores, target, -1).backward()
    expected = scores.detach().softmax(-1) - target
    assert scores.grad.tolist() == pytest.approx(expected.tolist())
    # It vanishes where the policy is the target.
    there = target.log().requires_grad_()
    target_cross_entropy(there, target, -1).backward()
    assert there.grad.abs().max() < 1e-12


def test_tpo_without_its_anchor_is_tpo_of_a_uniform_policy():
    skills = tensor(1.2, -0.7, -0.5)
    uniform = tpo_target(tensor(-3, -3, -3), skills, 0.8, -1)
    assert unanchored_target(skills, 0.8, -1).tolist() == pytest.approx(uniform.tolist())


def test_group_pg_scales_with_its_temperature():
    scores, skills = tensor(-1, -2), tensor(1, -1)
    assert group_pg(scores, skills, 1.0, -1).item() == pytest.approx(-1)
    assert group_pg(scores, skills, 2.0, -1).item() == pytest.approx(-0.5)


def test_mirror_descent_is_zero_at_the_tilted_policy():
    old, advantages, tau = tensor(0.5, 0.3, 0.2), tensor(0.4, -0.1, -0.3), 0.7
    tilted = old * (advantages / tau).exp()
    partition = tilted.sum()
    log_ratio = (tilted / partition).log() - old.log()
    terms = mirror_descent(log_ratio, advantages - tau * partition.log(), tau)
    assert terms.abs().max() < 1e-12


LOGITS = tensor(0.3, -0.7, 1.1, 0.0)
RIGHT = tensor(0, 1, 0, 1)


def expected_gradient(weight):
    """Gradient of the loss over logits, on average over sampled actions: weight(log-probs) [V]."""
    logits = LOGITS.clone().requires_grad_()
    logp = logits.log_softmax(-1)
    (logp.detach().exp() * policy_gradient(logp, weight(logp.detach()))).sum().backward()
    return logits.grad


def gradient_of(objective):
    logits = LOGITS.clone().requires_grad_()
    objective(logits.softmax(-1)).backward()
    return logits.grad


def test_reinforce_and_log_growth_follow_their_objectives():
    success = gradient_of(lambda p: -(p * RIGHT).sum())
    assert expected_gradient(lambda logp: RIGHT).allclose(success)
    # With R as the advantage each right action adds grad log p: the sum of their log-probs grows.
    growth = gradient_of(lambda p: -(p.log() * RIGHT).sum())
    assert expected_gradient(lambda logp: log_growth_weights(logp, RIGHT, RIGHT)).allclose(growth)


def test_maxrl_follows_the_truncated_log_likelihood():
    # Over all groups of K samples, E[(R - mean) / mean grad log p] is the gradient of
    # -sum_{k=1}^{K-1} (1 - q)^k / k with q the success rate: the series of log q, cut off.
    size = 3
    logits = LOGITS.clone().requires_grad_()
    logp = logits.log_softmax(-1)
    outcomes = torch.cartesian_prod(*[torch.arange(4)] * size)
    picked = logp[outcomes]
    advantages = maxrl_advantages(RIGHT[outcomes], -1)
    chance = picked.detach().sum(-1).exp()
    (chance * policy_gradient(picked, advantages).mean(-1)).sum().backward()

    def series(p):
        miss = 1 - (p * RIGHT).sum()
        return sum(miss**k / k for k in range(1, size))

    assert logits.grad.allclose(gradient_of(series), atol=1e-7)
