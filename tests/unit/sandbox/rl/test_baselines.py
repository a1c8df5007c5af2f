"""What is subtracted from rewards, by name, and how often groups are mixed."""

import pytest
import torch
from small_runs import batch_of, settings

from hgrpo.formulas.group import mixed_reward_rate
from hgrpo.sandbox.rl.train import Trainer, baseline


def start_and_collision(batch, trainer, **changes):
    table = trainer.policy.table(trainer.weights, batch.inputs["policy"], batch.actions)
    start = baseline(settings("DG", **changes), batch, table)
    return start.expand(batch.actions.shape), table.exp().square().sum(-1)


def test_baselines_by_name():
    trainer = Trainer(settings("DG"))
    batch = batch_of(trainer)
    assert batch.expected is None
    for name, value in (("zero", 0.0), ("constant", 0.5)):
        assert start_and_collision(batch, trainer, baseline=name)[0].eq(value).all()
    for name in ("expected", "collision"):
        start, collision = start_and_collision(batch, trainer, baseline=name)
        assert start.equal(collision) and not start.requires_grad
    total = batch.rewards.sum(1, keepdim=True)
    others = (total - batch.rewards) / 15
    start, _ = start_and_collision(batch, trainer, baseline="group")
    assert torch.allclose(start[..., 0, 0], others)


def test_a_group_is_its_own_baseline():
    trainer = Trainer(settings("DG", grouped=True, baseline="group"))
    batch = batch_of(trainer)
    assert batch.rewards.shape == (2, 4, 4)
    others = (batch.rewards.sum(2, keepdim=True) - batch.rewards) / 3
    assert torch.allclose(
        start_and_collision(batch, trainer, baseline="group")[0][..., 0, 0], others
    )


@pytest.mark.parametrize(
    ("name", "compat", "stated"),
    [
        ("expected", "none", True),
        ("exact", "none", True),
        ("collision", "none", False),
        ("zero", "none", False),
        ("zero", "reference", True),
        ("constant", "reference", True),
        ("group", "reference", False),
    ],
)
def test_an_expectation_that_the_task_states(name, compat, stated):
    trainer = Trainer(settings("DG", binary_reward=True))
    batch = batch_of(trainer)
    changes = {"baseline": name, "compat": compat, "binary_reward": True}
    start, _ = start_and_collision(batch, trainer, **changes)
    expected = batch.expected[..., None, None, None].expand_as(start)
    assert start.equal(expected) == stated


def test_noise_leaves_only_the_exact_baseline_its_expectation():
    noise = {"reward_noise": 0.5, "reward_noise_mode": "label_flip", "binary_reward": True}
    for name, there in (("expected", False), ("exact", True)):
        batch = batch_of(Trainer(settings("DG", baseline=name, **noise)))
        assert (batch.expected is not None) == there


def test_mixed_groups_come_as_often_as_predicted():
    run = settings("GRPO", binary_reward=True, batch_size=4000, seq_len=2, num_steps=1)
    row = Trainer(run).run()[0]
    assert 0.1 < row["mixed_group_rate"] < 0.9
    assert row["mixed_group_rate"] == pytest.approx(row["predicted_mixed_rate"], abs=0.04)
    batch = batch_of(Trainer(run))
    unlike = batch.rewards.amax(-1) != batch.rewards.amin(-1)
    assert batch.extras["mixed"].equal(unlike.float())


def test_mixed_groups_of_fractional_rewards_come_as_often_as_predicted():
    # Rewards 0, 0 and 1 with chances 0.5, 0.3 and 0.2: 1 - 0.8^2 - 0.2^2.
    chances, rewards = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.0, 0.0, 1.0])
    assert mixed_reward_rate(chances, rewards, 2).item() == pytest.approx(0.32)
    row = Trainer(settings("GRPO", batch_size=800, seq_len=2, num_steps=1)).run()[0]
    assert 0.1 < row["mixed_group_rate"] < 0.98
    assert row["mixed_group_rate"] == pytest.approx(row["predicted_mixed_rate"], abs=0.06)
    noise = {"reward_noise": 0.5, "reward_noise_mode": "label_flip"}
    for changes in ({"delay": 1}, {"seq_len": 10}, noise):
        rows = Trainer(settings("GRPO", **{"num_steps": 2, "eval_every": 1} | changes)).run()
        assert all("predicted_mixed_rate" not in row for row in rows), changes


def test_the_reference_draws_inputs_for_an_evaluation():
    plain, drawn = (Trainer(settings("DG", compat=name)) for name in ("none", "reference"))
    assert plain.examiner.questions(0).inputs.shape == (2, 8, 4)
    first, again, later = (drawn.examiner.questions(step).inputs for step in (0, 0, 1))
    assert first.shape == (2, 1000, 4) and first.equal(again) and not first.equal(later)
    assert not first[0].equal(first[1])
