"""Diagnostics: cosines that are known, shares that add up, entropies that were measured twice."""

from dataclasses import replace

import pytest
import torch
from small_runs import batch_of, gradient, settings, true_gradient

from hgrpo.sandbox.rl.acquire import without_noise
from hgrpo.sandbox.rl.diagnostics import (
    entropy_columns,
    exact_gradient,
    gradient_columns,
    ratio_columns,
    terciles,
    token_advantages,
)
from hgrpo.sandbox.rl.train import Trainer


def test_the_oracles_own_gradient_has_cosine_one():
    trainer = Trainer(settings("CE"))
    columns = gradient_columns(trainer, batch_of(trainer))
    assert columns["cos_method_ce"].tolist() == pytest.approx([1, 1], abs=1e-5)
    assert "mass_pos_adv" not in columns


def test_the_exact_gradient_is_that_of_the_expected_reward():
    trainer = Trainer(settings("REINFORCE", batch_size=4, seq_len=2, seeds=(0,)))
    questions, _ = trainer.task.examination()
    views = {"inputs": {"policy": questions.inputs}, "labels": questions.labels}
    batch = replace(batch_of(trainer), **views)
    right = true_gradient(trainer, trainer.weights)
    assert torch.allclose(exact_gradient(trainer, batch)[0], right, rtol=1e-4, atol=1e-6)


def test_noise_turns_the_gradient_away_from_the_clean_one():
    noise = {"reward_noise": 1.0, "reward_noise_mode": "label_flip", "batch_size": 64}
    trainer = Trainer(settings("REINFORCE", baseline="zero", **noise))
    batch = batch_of(trainer)
    columns = gradient_columns(trainer, batch)
    expected = torch.cosine_similarity(
        gradient(trainer, batch),
        gradient(trainer, type(batch)(**vars(batch) | {"rewards": batch.clean})),
    )
    assert torch.allclose(columns["cos_method_clean"], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("REINFORCE", {"baseline": "constant", "grouped": True}),
        ("FilteredDG", {"baseline": "constant", "grouped": True, "rule": {"threshold": 0.4}}),
        ("GRPO", {}),
    ],
)
def test_signals_are_those_of_honest_and_of_struck_rollouts(method, more):
    """Each rollout's part alone, with the weight it has in the whole batch."""
    noise = {"reward_noise": 0.3, "reward_noise_mode": "label_flip", "binary_reward": True}
    run = settings(method, seq_len=2, **noise | more)
    trainer = Trainer(run)
    batch = batch_of(trainer)
    seen = trainer.see(batch, trainer.weights)
    struck = batch.rewards != batch.clean
    assert struck.any() and not struck.all()

    def part(chosen):
        """Every other rollout's log-probs are held fixed."""
        weights = trainer.weights.clone().requires_grad_()
        table = trainer.see(batch, weights).table
        inside = chosen[..., None, None, None]
        mixed = torch.where(inside, table, table.detach())
        loss = trainer.rule.term(replace(seen, table=mixed)).loss
        return torch.autograd.grad(loss.sum(), weights)[0]

    exact = torch.nn.functional.normalize(exact_gradient(trainer, batch), dim=1)
    columns = gradient_columns(trainer, batch)
    assert torch.allclose(columns["true_signal"], (part(~struck) * exact).sum(1), atol=1e-6)
    assert torch.allclose(columns["false_signal"], part(struck).norm(dim=1), atol=1e-6)


def test_without_noise_no_signal_is_false():
    trainer = Trainer(settings("DG", seq_len=2))
    assert gradient_columns(trainer, batch_of(trainer))["false_signal"].tolist() == [0, 0]


@pytest.mark.parametrize(("method", "compat"), [("Kondo", "none"), ("GRPO", "reference")])
def test_clean_rewards_also_choose_the_rollouts(method, compat):
    noise = {"reward_noise": 0.5, "reward_noise_mode": "label_flip", "binary_reward": True}
    run = settings(method, compat=compat, batch_size=64, seq_len=2, **noise)
    trainer = Trainer(run)
    batch = batch_of(trainer)
    noisy, _ = trainer.screened(batch)
    quiet, _ = trainer.screened(without_noise(run, trainer.task, noisy))
    assert quiet.rewards.equal(batch.clean)
    calm = Trainer(settings(method, compat=compat, batch_size=64, seq_len=2, binary_reward=True))
    expected, _ = calm.screened(batch_of(calm))
    assert quiet.keep.equal(expected.keep) and not quiet.keep.equal(noisy.keep)
    cosine = gradient_columns(trainer, noisy)["cos_method_clean"]
    right = torch.cosine_similarity(gradient(trainer, noisy), gradient(trainer, quiet))
    assert torch.allclose(cosine, right, atol=1e-5)


@pytest.mark.parametrize("method", ["DG", "GRPO", "TPOToken", "PMDMean"])
def test_shares_of_the_gradient_add_up(method):
    trainer = Trainer(settings(method, task="masked_reversal"))
    columns = gradient_columns(trainer, batch_of(trainer))
    for names in (
        [f"mass_surprisal_{bucket}" for bucket in ("low", "mid", "high")],
        [f"mass_position_{place}" for place in range(3)],
    ):
        total = sum(columns[name] for name in names)
        assert total.tolist() == pytest.approx([1, 1], abs=1e-5)
    assert torch.allclose(columns["mass_unscored"], columns["mass_position_0"])


def test_the_share_of_a_token_is_its_weight_times_the_size_of_its_score():
    # REINFORCE: the gradient over a token's logits is -A (1[a] - p), up to the common divisor.
    trainer = Trainer(settings("REINFORCE", baseline="constant"))
    batch = batch_of(trainer)
    seen = trainer.see(batch, trainer.weights)
    chosen = torch.nn.functional.one_hot(batch.actions, 3) - seen.table.exp()
    size = (seen.advantages.unsqueeze(-1) * chosen).norm(dim=-1)
    positive = (size * (seen.advantages > 0)).flatten(1).sum(1) / size.flatten(1).sum(1)
    columns = gradient_columns(trainer, batch)
    assert torch.allclose(columns["mass_pos_adv"], positive, atol=1e-5)


def test_a_rule_that_credits_tokens_is_split_by_its_own_advantages():
    # The last two of three positions are rewarded.
    trainer = Trainer(settings("DGToken", task="masked_reversal"))
    batch = batch_of(trainer)
    table = trainer.see(batch, trainer.weights).table
    right = (batch.actions == batch.labels[:, :, None, None]).float()
    both = (right[..., 1] + right[..., 2]) / 2
    credit = torch.stack([both, both, right[..., 2]], -1)
    credit = credit - table.exp().square().sum(-1) * torch.tensor([0.0, 1.0, 1.0])
    chosen = torch.nn.functional.one_hot(batch.actions, 3)
    gates = (-credit * (table * chosen).sum(-1)).sigmoid()
    size = (gates * credit).abs() * (chosen - table.exp()).norm(dim=-1)
    positive = (size * (credit > 0)).flatten(1).sum(1) / size.flatten(1).sum(1)
    assert torch.allclose(gradient_columns(trainer, batch)["mass_pos_adv"], positive, atol=1e-5)


@pytest.mark.parametrize("method", ["DGToken", "SelfDistillDG", "TEMPO"])
def test_the_advantages_of_diagnostics_are_those_that_the_rule_trains_on(method):
    # The loss falls with a token's log-prob if its advantage is above 0, and rises if it is below.
    trainer = Trainer(settings(method, rule={"alpha": 0.0} if method == "SelfDistillDG" else {}))
    batch = batch_of(trainer)
    seen = trainer.see(batch, trainer.weights.clone().requires_grad_())
    loss = trainer.rule.term(seen).loss.sum()
    (slopes,) = torch.autograd.grad(loss, seen.logprobs)
    expected = token_advantages(trainer, seen)
    assert slopes.sign().equal(-expected.sign()) and expected.std() > 0.1


def test_ratios_outside_the_band_are_counted():
    trainer = Trainer(settings("GRPO", rule={"clip": 0.5}))
    batch = batch_of(trainer)
    moved = torch.zeros_like(batch.behaviour)
    moved[:, 0], moved[:, 1] = -torch.tensor(1.6).log(), torch.tensor(3.0).log()
    older = type(batch)(**vars(batch) | {"behaviour": batch.behaviour + moved})
    columns = ratio_columns(trainer.rule, trainer.see(older, trainer.weights))
    assert columns["ratio_above_band"].tolist() == pytest.approx([0.25] * 2)
    assert columns["ratio_below_band"].tolist() == pytest.approx([0.25] * 2)
    assert columns["ratio_largest"].tolist() == pytest.approx([1.6] * 2, rel=1e-4)


@pytest.mark.parametrize(("epochs", "moves"), [(1, False), (4, True)])
def test_ratios_are_those_of_the_last_update_on_a_batch(epochs, moves):
    run = settings("GRPO", inner_epochs=epochs, num_steps=1, diagnostics=True, lr=0.01)
    for row in Trainer(run).run()[:2]:
        largest = row["ratio_largest"]
        assert largest > 1.01 if moves else largest == pytest.approx(1.0, abs=1e-4)


def test_entropy_columns_by_hand():
    trainer = Trainer(settings("REINFORCE"))
    batch = batch_of(trainer)
    with torch.no_grad():
        before = trainer.see(batch, trainer.weights)
        same = entropy_columns(before, before.table, before.advantages)
        uniform = torch.full_like(before.table, 1 / 3).log()
        flat = entropy_columns(before, uniform, before.advantages)
    assert same["batch_delta_entropy"].abs().max() == 0
    assert same["cov_prob_delta_logit"].abs().max() < 1e-7
    entropy = -(before.table.exp() * before.table).sum(-1)
    rise = torch.tensor(3.0).log() - entropy
    assert torch.allclose(flat["batch_delta_entropy"], rise.flatten(1).mean(1), atol=1e-6)
    up = before.advantages > 0
    expected = -(rise * up).flatten(1).sum(1) / up.flatten(1).sum(1)
    assert torch.allclose(flat["entropy_drop_pos_adv"], expected, atol=1e-6)
    # The likelier a token was, the more its log-prob falls on the way to the uniform policy.
    assert (flat["cov_prob_delta_logit"] < 0).all()
    # A seed without a token of positive advantage has no such fall; the others keep theirs.
    advantages = before.advantages.clone()
    advantages[0] = -1.0
    alone = entropy_columns(before, uniform, advantages)["entropy_drop_pos_adv"]
    assert alone.isnan().tolist() == [True, False]
    assert torch.allclose(alone[1:], expected[1:], atol=1e-6)


def test_terciles_split_what_counts():
    values = torch.tensor([[1.0, 2, 3, 4, 5, 6, 100]])
    weight = torch.tensor([[1.0] * 6 + [0]])
    low, mid, high = terciles(values, weight)
    assert [mask[0, :6].sum().item() for mask in (low, mid, high)] == [2, 2, 2]


def test_a_run_logs_diagnostics_and_they_change_nothing():
    runs = [settings("GRPO", eval_every=1, **dict.fromkeys(NAMES, on)) for on in (False, True)]
    plain, watched = map(Trainer, runs)
    plain.run()
    rows = watched.run()
    assert plain.weights.equal(watched.weights)
    assert "cos_method_ce" in rows[0] and "cos_method_ce" not in rows[2]
    assert "entropy_drop_delight_high" in rows[2]


NAMES = ("diagnostics", "entropy_diagnostics")
