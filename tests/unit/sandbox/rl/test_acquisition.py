"""Noise, delay, replay, screen and candidates."""

import pytest
import torch
from small_runs import batch_of, settings

from hgrpo.formulas.batch import Questions
from hgrpo.sandbox.rl.acquire import corrupt, false_rates
from hgrpo.sandbox.rl.replay import Supply
from hgrpo.sandbox.rl.tasks.task import make_task
from hgrpo.sandbox.rl.train import Trainer

# Four outputs for the input 0 1 (the answer is 1 0): right, separator, action 0 first, other.
OUTPUTS = torch.tensor([[1, 0], [2, 1], [0, 1], [1, 1]]).view(1, 4, 1, 1, 2)
ASKED = Questions(
    torch.tensor([[[0, 1, 2]]]).expand(1, 4, 3), torch.tensor([[[1, 0]]]).expand(1, 4, 2)
)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("label_flip", [0, 1, 1, 0.5]),
        ("random_reward", [0.25] * 4),
        ("false_positive_action0", [1, 0, 1, 0.5]),
        ("false_positive_rare_token", [1, 1, 0, 0.5]),
        ("false_positive_sep", [1, 1, 0, 0.5]),
        ("spurious_feature", [1, 0, 1, 0.5]),
    ],
)
def test_noise_by_hand(mode, expected):
    run = settings("DG", seq_len=2, reward_noise=0.9, reward_noise_mode=mode)
    task = make_task(run)
    clean = task.rewards(OUTPUTS, ASKED.labels[:, :, None, None])[..., 0]
    assert clean.flatten().tolist() == [1, 0, 0, 0.5]
    draws = torch.tensor([0.5, 0.25]).expand(1, 4, 1, 2)
    noisy = corrupt(run, task, ASKED, OUTPUTS, clean, draws)
    assert noisy.flatten().tolist() == pytest.approx(expected)
    quiet = torch.tensor([0.9, 0.25]).expand(1, 4, 1, 2)
    assert corrupt(run, task, ASKED, OUTPUTS, clean, quiet).equal(clean)


def test_false_rates_count_among_wrong_and_among_right():
    clean, noisy = torch.tensor([[1.0, 1, 0, 0, 0.5]]), torch.tensor([[1.0, 0, 1, 0, 0]])
    right = clean == 1
    rates = false_rates(noisy[..., None], clean[..., None], right[..., None])
    assert rates["false_positive_rate"].item() == pytest.approx(1 / 3)
    assert rates["false_negative_rate"].item() == pytest.approx(1 / 2)


def test_realised_noise_has_the_rate_that_was_asked_for():
    run = settings("DG", batch_size=4000, reward_noise=0.3, reward_noise_mode="label_flip")
    batch = batch_of(Trainer(run))
    assert (batch.rewards != batch.clean).float().mean().item() == pytest.approx(0.3, abs=0.02)


def supplied(run, steps=8):
    """The steps at which the batches that train were sampled, by step and seed."""
    trainer, supply, batches = Trainer(run), Supply(run), []
    for step in range(steps):
        batch, metrics = supply.next(batch_of(trainer, step), step)
        batches.append(((step - batch.age).tolist(), batch, metrics))
    return batches


def test_a_delayed_batch_is_the_one_sampled_so_long_ago():
    batches = supplied(settings("DG", delay=3))
    # Until a batch is old enough the fresh one trains.
    assert [made for made, _, _ in batches] == [[step] * 2 for step in (0, 1, 2, 0, 1, 2, 3, 4)]
    assert batches[-1][2] == {}


@pytest.mark.parametrize(
    ("changes", "ages"),
    [
        ({"replay_capacity": 3}, {0, 1, 2}),
        ({"replay_capacity": 4, "delay": 2}, {2, 3}),
        ({"replay_capacity": 4, "replay_min_age": 1}, {1, 2, 3}),
        ({"replay_capacity": 3, "delay": 2}, {2}),
    ],
)
def test_replay_draws_ages_between_its_bounds_for_each_seed_alone(changes, ages):
    run = settings("ReplayDG", replay_priority="uniform", **changes)
    batches = supplied(run, 40)
    drawn = [[step - one for one in made] for step, (made, _, _) in enumerate(batches) if step >= 4]
    assert {age for pair in drawn for age in pair} == ages
    if len(ages) > 1:
        assert any(first != second for first, second in drawn)
    # Each seed's part is that of the batch it was drawn from.
    trainer = Trainer(run)
    made, batch, metrics = batches[-1]
    for seed, step in enumerate(made):
        assert batch.actions[seed].equal(batch_of(trainer, step).actions[seed])
    assert metrics["replay_size"].tolist() == [run.replay_capacity] * 2
    ages = torch.stack([batch.age for _, batch, _ in batches])
    for age in range(run.replay_capacity):
        assert metrics[f"trained_age_{age}"].equal((ages == age).sum(0))


def test_replay_begins_at_its_step():
    batches = supplied(settings("ReplayDG", replay_capacity=4, replay_min_age=2, replay_start=5))
    ages = torch.stack([batch.age for _, batch, _ in batches])
    assert (ages[:5] == 0).all() and (ages[5:] >= 2).all()


def test_priorities_by_hand():
    trainer = Trainer(settings("ReplayDG"))
    batch = batch_of(trainer)
    advantages = batch.rewards[..., None, None] - batch.collision
    surprisal = -batch.behaviour
    expected = {
        "uniform": torch.ones(2),
        "reward": batch.rewards.flatten(1).mean(1),
        "advantage": advantages.abs().flatten(1).mean(1),
        "surprisal": surprisal.flatten(1).mean(1),
        "delight": (advantages * surprisal).clamp(min=0).flatten(1).mean(1),
    }
    expected["fresh_delight"] = expected["delight"] * torch.tensor(-0.02 * 7).exp()
    for name, values in expected.items():
        run = settings("ReplayDG", replay_priority=name)
        assert torch.allclose(Supply(run)._priority(batch, 7), values), name


def test_a_batch_of_worth_is_drawn_and_worthless_ones_are_drawn_alike():
    run = settings("ReplayDG", replay_priority="reward", replay_capacity=2)
    trainer, supply = Trainer(run), Supply(run)
    batch = batch_of(trainer)
    nothing = type(batch)(**vars(batch) | {"rewards": torch.zeros_like(batch.rewards)})
    supply.next(batch, 0)
    ages = {tuple(supply.next(nothing, 1)[0].age.tolist())}
    assert ages == {(1, 1)}
    drawn = [supply.next(nothing, step)[0].age for step in range(2, 40)]
    assert set(torch.cat(drawn).tolist()) == {0, 1}


def test_kondos_screen_keeps_about_the_share_that_is_asked_for():
    trainer = Trainer(settings("Kondo", batch_size=2000, rule={"keep": 0.25}))
    keep, metrics = trainer.rule.screen(batch_of(trainer), torch.rand(2, 2000))
    assert metrics["gate_prob_mean"].tolist() == pytest.approx([0.25] * 2, abs=1e-3)
    assert metrics["kept_frac"].tolist() == pytest.approx([0.25] * 2, abs=0.03)
    assert set(keep.unique().tolist()) == {0, 1} and keep.shape == (2, 2000, 1)


def test_candidates_are_drawn_at_the_sampled_prefixes():
    trainer = Trainer(settings("TPOToken", batch_size=3000, task="masked_reversal"))
    batch = batch_of(trainer)
    candidates = batch.candidates
    assert candidates.actions.shape == (2, 3000, 1, 1, 3, 4)
    assert candidates.actions[..., 0].equal(batch.actions)
    assert torch.allclose(candidates.behaviour[..., 0], batch.behaviour)
    right = candidates.actions == batch.labels[:, :, None, None, :, None]
    assert candidates.rewards.equal(right * torch.tensor([0.0, 1, 1]).unsqueeze(-1))
    # Before the first token all prefixes of one input are equal: the shares are the policy's.
    table = trainer.policy.table(trainer.weights, batch.inputs["policy"], batch.actions)
    shares = (
        torch.nn.functional.one_hot(candidates.actions[:, :, 0, 0, 0, 1:], 3).float().mean((1, 2))
    )
    assert torch.allclose(shares, table[:, :, 0, 0, 0].exp().mean(1), atol=0.03)


def test_reference_leaves_groups_of_equal_rewards_out_of_the_mean():
    changes = {"binary_reward": True, "batch_size": 64, "seq_len": 2}
    batch = batch_of(Trainer(settings("GRPO", compat="reference", **changes)))
    mixed = batch.extras["mixed"]
    assert 0 < mixed.mean() < 1
    assert batch.keep.equal(mixed.unsqueeze(-1).expand_as(batch.keep))
    assert batch_of(Trainer(settings("GRPO", **changes))).keep.all()
