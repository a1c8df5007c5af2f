"""The rules' gradients: equal where they must be, zero where they must be, right on average."""

from dataclasses import replace

import pytest
import torch
from small_digits import write_digits
from small_runs import batch_of, gradient, settings

from hgrpo.learning.objectives.group import z_scores
from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rl.declared import RULES
from hgrpo.sandbox.rl.exact import all_outputs, expected_rewards
from hgrpo.sandbox.rl.train import Trainer

GROUPED = [name for name, rule in RULES.items() if rule.grouped]


@pytest.mark.parametrize("method", ["PG", "TrajPG", "ASPO", "R2VPO"])
def test_on_fresh_batches_ratio_rules_are_reinforce(method):
    plain = Trainer(settings("REINFORCE"))
    batch = batch_of(plain)
    found = gradient(Trainer(settings(method)), batch)
    assert torch.allclose(found, gradient(plain, batch), rtol=1e-4, atol=1e-7)
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
    found = gradient(trainer, equal)
    assert found.isfinite().all() and found.abs().max() < 1e-6
    mixed = torch.tensor([0.0, 1.0, 0.0, 1.0]).expand_as(batch.rewards)
    assert gradient(trainer, replace(batch, rewards=mixed)).abs().max() > 1e-4


@pytest.mark.parametrize("method", [name for name in RULES if name not in ("CE", "PMDMean")])
def test_a_rollout_that_is_not_kept_changes_nothing(method, tmp_path):
    trainer = Trainer(settings(method, write_digits(tmp_path / "digits.npz")))
    batch = batch_of(trainer)
    keep = torch.ones_like(batch.rewards)
    keep[:, 0] = 0.0
    kept = batch.kept(keep)
    # The deviation of the whole batch is what UncertaintyDG and its relatives read.
    altered = kept.actions.clone()
    altered[:, 0] = (altered[:, 0] + 1) % trainer.task.actions
    found = gradient(trainer, replace(kept, actions=altered))
    assert torch.allclose(found, gradient(trainer, kept), rtol=1e-4, atol=1e-7)


def test_tpos_gradient_over_a_groups_scores_is_policy_minus_target():
    trainer = Trainer(settings("TPO"))
    batch = batch_of(trainer)
    weights = trainer.weights.clone().requires_grad_()
    seen = trainer.see(batch, weights)
    term = trainer.term(seen, trainer.own)
    (found,) = torch.autograd.grad(term.loss.sum(), seen.scores)
    old = batch.behaviour.sum((-1, -2)).log_softmax(-1)
    target = (old + z_scores(batch.rewards, -1)).softmax(-1)
    expected = (seen.scores.softmax(-1) - target) / batch.rewards.shape[1]
    assert torch.allclose(found, expected, atol=1e-6)


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
    found = gradient(Trainer(settings("GRPO", rule=free)), older)
    assert torch.allclose(found, gradient(plain, older), rtol=1e-4, atol=1e-7)
    assert not gradient(Trainer(settings("GRPO")), older).allclose(found, rtol=1e-2)


def test_dg_token_reads_all_positions_where_all_are_scored():
    masked = Trainer(settings("DGToken", task="masked_reversal", score_len=3))
    batch = batch_of(masked)
    assert gradient(masked, batch).equal(gradient(Trainer(settings("DGToken")), batch))


def enumerated(trainer, weight_of):
    """The gradient of E[weight log p] summed over all outputs, and the objective's own gradient."""
    weights = trainer.weights.clone().requires_grad_()
    asked, _ = trainer.task.examination()
    count = len(trainer.settings.seeds)
    inputs, labels = (each.expand(count, *each.shape[1:]) for each in asked)
    outputs = all_outputs(trainer.task)
    actions = outputs[None, None, :, None].expand(count, inputs.shape[1], -1, -1, -1)
    logp = taken(trainer.policy.table(weights, inputs, actions), actions).sum(-1)[..., 0]
    rewards = trainer.task.rewards(outputs, labels.unsqueeze(2))
    loss = -(logp.exp().detach() * weight_of(rewards, logp.detach()) * logp).sum(-1).mean(1)
    objective = -(logp.exp() * rewards).sum(-1).mean(1)
    return (
        torch.autograd.grad(loss.sum(), weights, retain_graph=True)[0],
        torch.autograd.grad(objective.sum(), weights)[0],
    )


def test_reinforce_is_unbiased_with_any_baseline_of_the_input():
    trainer = Trainer(settings("REINFORCE"))
    mean, objective = enumerated(trainer, lambda rewards, logp: rewards - 0.3)
    assert torch.allclose(mean, objective, rtol=1e-3, atol=1e-6)


def test_sampled_reinforce_approaches_the_exact_gradient():
    run = settings("REINFORCE", batch_size=3000, baseline="exact", seeds=(0,), seq_len=2)
    trainer = Trainer(run)
    _, objective = enumerated(trainer, lambda rewards, logp: rewards)
    # The rule takes the mean over the two tokens of a rollout.
    found = 2 * gradient(trainer, batch_of(trainer))
    assert torch.cosine_similarity(found, objective).item() > 0.97
    assert 0.9 < (found.norm() / objective.norm()).item() < 1.1


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
    asked = trainer.task.draw((0, 1), 0, 5)
    given = trainer.policy, trainer.weights, asked
    listed = expected_rewards(Unstated(trainer.task), *given)
    assert torch.allclose(trainer.task.stated(*given), listed, atol=1e-6)
