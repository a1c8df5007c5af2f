"""The rules' gradients: equal where they must be, zero where they must be, right on average."""

from dataclasses import replace

import pytest
import torch
from small_digits import write_digits
from small_runs import batch_of, gradient, mean_gradient, settings, true_gradient

from hgrpo.formulas.group import z_scores
from hgrpo.sandbox.rl.settings import RULES
from hgrpo.sandbox.rl.tasks.task import expected_rewards
from hgrpo.sandbox.rl.train import Trainer

GROUPED = [name for name, rule in RULES.items() if rule.grouped]


@pytest.mark.parametrize("method", ["PG", "TrajPG", "ASPO", "R2VPO"])
def test_on_fresh_batches_ratio_rules_are_reinforce(method):
    plain = Trainer(settings("REINFORCE"))
    batch = batch_of(plain)
    fresh = gradient(Trainer(settings(method)), batch)
    assert torch.allclose(fresh, gradient(plain, batch), rtol=1e-4, atol=1e-7)
    # Off the policy that sampled they part.
    older = replace(batch, behaviour=batch.behaviour - torch.rand(batch.behaviour.shape))
    away = gradient(Trainer(settings(method)), older)
    assert not torch.allclose(away, gradient(plain, older), rtol=1e-2, atol=1e-3)


def test_on_fresh_batches_grpo_is_a_policy_gradient_of_z_scores():
    trainer = Trainer(settings("GRPO", rule={"beta": 0.0}))
    batch = batch_of(trainer)
    plain = Trainer(settings("REINFORCE", baseline="zero"))
    scored = replace(batch, rewards=z_scores(batch.rewards, -1), expected=None)
    assert torch.allclose(gradient(trainer, batch), gradient(plain, scored), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("method", GROUPED)
def test_groups_of_equal_rewards_have_no_gradient(method):
    trainer = Trainer(settings(method))
    batch = batch_of(trainer)
    equal = replace(batch, rewards=torch.full_like(batch.rewards, 0.1))
    flat = gradient(trainer, equal)
    assert flat.isfinite().all() and flat.abs().max() < 1e-6
    mixed = torch.tensor([0.0, 1.0, 0.0, 1.0]).expand_as(batch.rewards)
    assert gradient(trainer, replace(batch, rewards=mixed)).abs().max() > 1e-4


@pytest.mark.parametrize("method", [name for name in RULES if name not in ("CE", "PMDMean")])
def test_a_rollout_that_is_not_kept_changes_nothing(method, tmp_path):
    trainer = Trainer(settings(method, write_digits(tmp_path / "digits.npz")))
    batch = batch_of(trainer)
    keep = torch.ones_like(batch.rewards)
    keep[:, 0] = 0.0
    fewer = batch.restricted(keep)
    # The deviation of the whole batch is what UncertaintyDG and its relatives read.
    altered = fewer.actions.clone()
    altered[:, 0] = (altered[:, 0] + 1) % trainer.task.actions
    moved = gradient(trainer, replace(fewer, actions=altered))
    assert torch.allclose(moved, gradient(trainer, fewer), rtol=1e-4, atol=1e-7)


def test_tpos_gradient_over_a_groups_scores_is_policy_minus_target():
    trainer = Trainer(settings("TPO"))
    batch = batch_of(trainer)
    weights = trainer.weights.clone().requires_grad_()
    seen = trainer.see(batch, weights)
    term = trainer.rule.term(seen)
    (slopes,) = torch.autograd.grad(term.loss.sum(), seen.scores)
    old = batch.behaviour.sum((-1, -2)).log_softmax(-1)
    target = (old + z_scores(batch.rewards, -1)).softmax(-1)
    expected = (seen.scores.softmax(-1) - target) / batch.rewards.shape[1]
    assert torch.allclose(slopes, expected, atol=1e-6)


def test_one_rule_on_groups_of_deviation_one():
    # Rewards 0 and 1, half and half, centred are +-1/2 and as z-scores +-1.
    batch = batch_of(Trainer(settings("GRPO")))
    rewards = torch.tensor([0.0, 1.0, 0.0, 1.0]).expand_as(batch.rewards)
    same = replace(batch, rewards=rewards)
    grpo = gradient(Trainer(settings("GRPO")), same)
    dapo = gradient(Trainer(settings("DAPO")), same)
    dr_grpo = gradient(Trainer(settings("DrGRPO")), same)
    assert torch.allclose(dapo, grpo, rtol=1e-3, atol=1e-6)
    # DrGRPO adds up the three tokens of a rollout, and does not divide by the deviation 1/2.
    assert torch.allclose(dr_grpo, grpo * 3 / 2, rtol=1e-3, atol=1e-6)


def test_grpo_in_parts():
    trainer = Trainer(settings("GRPO", rule={"norm": "mean", "reduction": "rollout"}))
    batch = batch_of(trainer)
    older = replace(batch, behaviour=batch.behaviour - 0.5 * torch.rand(batch.behaviour.shape))
    assert gradient(trainer, older).equal(gradient(Trainer(settings("DrGRPO")), older))
    free = {"norm": "none", "clip": None, "beta": 0.0}
    plain = Trainer(settings("PG", baseline="zero", rule={"cap": 100.0}))
    parts = gradient(Trainer(settings("GRPO", rule=free)), older)
    assert torch.allclose(parts, gradient(plain, older), rtol=1e-4, atol=1e-7)
    assert not gradient(Trainer(settings("GRPO")), older).allclose(parts, rtol=1e-2)


def test_dg_token_reads_all_positions_where_all_are_scored():
    masked = Trainer(settings("DGToken", task="masked_reversal", score_len=3))
    batch = batch_of(masked)
    assert gradient(masked, batch).equal(gradient(Trainer(settings("DGToken")), batch))


UNBIASED = [
    *[("REINFORCE", name, None) for name in ("zero", "constant", "collision", "exact")],
    # Fresh ratios are 1.
    *[(name, "constant", None) for name in ("PG", "TrajPG", "ASPO", "R2VPO")],
    # Off the policy that sampled, the ratio of the whole rollout is the right weight.
    ("TrajPG", "constant", 1e6),
]


@pytest.mark.parametrize(("method", "baseline", "cap"), UNBIASED)
def test_over_all_outputs_a_policy_gradient_is_that_of_the_expected_reward(method, baseline, cap):
    rule = {"cap": cap} if cap else {}
    trainer = Trainer(settings(method, seq_len=2, baseline=baseline, rule=rule))
    weights = trainer.weights[:1]
    sampler = trainer.weights[1:] if cap else weights
    # A rule takes the mean over the two tokens of a rollout.
    mean = 2 * mean_gradient(trainer, weights, sampler)
    assert torch.allclose(mean, true_gradient(trainer, weights), rtol=1e-3, atol=1e-6)


def test_off_the_policy_that_sampled_ratios_of_tokens_are_biased():
    trainer = Trainer(settings("PG", seq_len=2, baseline="constant", rule={"cap": 1e6}))
    mean = 2 * mean_gradient(trainer, trainer.weights[:1], trainer.weights[1:])
    right = true_gradient(trainer, trainer.weights[:1])
    assert not torch.allclose(mean, right, rtol=1e-2, atol=1e-4)


def test_over_all_pairs_of_outputs_centring_halves_the_gradient():
    # Of two rewards each stands in its own mean, which takes 1 / K of the gradient.
    trainer = Trainer(settings("DrGRPO", seq_len=2, group_size=2))
    weights = trainer.weights[:1]
    mean = mean_gradient(trainer, weights, weights, size=2)
    assert torch.allclose(mean, true_gradient(trainer, weights) / 2, rtol=1e-3, atol=1e-6)


class Unstated:
    """A task that does not state its expectation."""

    def __init__(self, task):
        self.task = task

    def __getattr__(self, name):
        return getattr(self.task, name)

    def stated(self, *_):
        return None


def test_the_expectation_that_a_task_states_is_the_sum_over_all_outputs():
    trainer = Trainer(settings("REINFORCE", binary_reward=True))
    questions = trainer.task.draw((0, 1), 0, 5)
    arguments = trainer.policy, trainer.weights, questions
    listed = expected_rewards(Unstated(trainer.task), *arguments)
    assert torch.allclose(trainer.task.stated(*arguments), listed, atol=1e-6)
