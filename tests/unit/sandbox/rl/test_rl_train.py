"""A run: seeds do not touch each other, evaluations touch nothing, interruptions leave no trace."""

import copy

import pytest
import torch
from small_runs import settings

from hgrpo.errors import TrainingError
from hgrpo.sandbox.nets.transformer import Transformer
from hgrpo.sandbox.rl.train import Trainer

# One of each kind: ratios on several passes, screen, delay, replay, groups, candidates, noise.
KINDS = [
    settings("PG", inner_epochs=2),
    settings("Kondo"),
    settings("DG", delay=2),
    settings("FreshDG", replay_capacity=3),
    settings("TPO", inner_epochs=2),
    settings("TPOToken"),
    settings("DG", reward_noise=0.5, reward_noise_mode="random_reward", baseline="group"),
]


def changed(run, **changes):
    return type(run)(**run.model_dump() | changes)


def agree(together, alone, index):
    """Whether a single run is what the stacked one says of the seed at `index`."""
    # Adam divides by the gradient's size, so rounding may move a small weight by more.
    apart = (together.weights[index] - alone.weights[0]).abs()
    assert apart.mean() < 1e-5 and apart.max() < 1e-2
    for theirs, mine in zip(together.rows[index::2], alone.rows, strict=True):
        numbers = {name: value for name, value in mine.items() if name != "method"}
        assert {name: theirs[name] for name in numbers} == pytest.approx(
            numbers, rel=1e-3, abs=1e-4
        )
        assert theirs.keys() == mine.keys()


@pytest.mark.parametrize("run", KINDS, ids=lambda run: run.method)
def test_stacked_seeds_are_single_runs(run):
    together = Trainer(run)
    together.run()
    for index, seed in enumerate(run.seeds):
        alone = Trainer(changed(run, seeds=(seed,)))
        alone.run()
        agree(together, alone, index)


@pytest.mark.parametrize("run", KINDS, ids=lambda run: run.method)
def test_how_often_a_run_evaluates_changes_nothing(run):
    often, seldom = Trainer(changed(run, eval_every=1)), Trainer(changed(run, eval_every=100))
    often.run(), seldom.run()
    assert often.weights.equal(seldom.weights)


@pytest.mark.parametrize("run", KINDS, ids=lambda run: run.method)
def test_a_resumed_run_equals_one_that_was_not_interrupted(run):
    whole = Trainer(run)
    half = Trainer(run)
    for _ in range(2):
        half.take_step()
    state = copy.deepcopy(half.state())
    half.take_step()
    later = Trainer(run)
    later.load_state(state)
    rows = whole.run()
    assert later.run() == rows
    assert later.weights.equal(whole.weights)


def test_the_first_update_uses_what_sampling_has_read(monkeypatch):
    """Each step reads its inputs once, and the update is that of inputs that are read again."""
    once, again = (Trainer(settings("DG", eval_every=100)) for _ in range(2))
    again.policy = again.policy.policy
    reads = []
    read = Transformer.read
    monkeypatch.setattr(Transformer, "read", lambda *given: reads.append(1) or read(*given))
    for trainer, expected in ((once, 1), (again, 2)):
        trainer.take_step()  # evaluates before
        reads.clear()
        trainer.take_step()
        assert len(reads) == expected
    assert torch.equal(once.weights, again.weights)


def test_arms_share_first_weights_and_data():
    arms = [Trainer(settings(name)) for name in ("DG", "TPO", "TPOToken")]
    assert all(arm.weights.equal(arms[0].weights) for arm in arms)
    few, many = (arm.task.draw((0, 1), 3, count) for arm, count in zip(arms, (4, 16), strict=False))
    assert few.inputs.equal(many.inputs[:, :4])


def test_a_seed_without_anything_to_compare_stops_alone():
    trainer = Trainer(settings("GRPO", num_steps=20, eval_every=100, binary_reward=True, seq_len=8))
    rows = trainer.run()
    assert rows[-1]["stopped_at"] == 9 and rows[-1]["rollouts"] == 10 * 16
    assert rows[-1]["updates"] == 9 and trainer.weights.isfinite().all()


def test_seeds_that_stop_at_different_times_are_single_runs():
    run = settings("GRPO", num_steps=14, eval_every=4, binary_reward=True, seq_len=2)

    def trained(*seeds):
        trainer = Trainer(changed(run, seeds=seeds))
        if 0 in seeds:
            # So sure of its outputs that no group differs; the head lies at the end of the weights.
            trainer.weights[seeds.index(0), -run.d_model * trainer.task.actions :] *= 1e5
        trainer.run()
        return trainer

    together = trained(0, 1)
    assert [row["stopped_at"] for row in together.rows[-2:]] == [9, -1]
    assert [row["updates"] for row in together.rows[-2:]] == [9, 14]
    for index in (0, 1):
        agree(together, trained(index), index)


def test_a_loss_that_is_not_finite_names_rule_seed_and_step():
    with pytest.raises(TrainingError, match="token_reversal, DG, step 1, seed 0"):
        Trainer(settings("DG", lr=1e30)).run()


def test_training_solves_a_short_task():
    run = settings("GRPO", num_steps=60, batch_size=64, seq_len=2, eval_every=100, lr=3e-3)
    rows = Trainer(run).run()
    first, last = rows[0], rows[-2]
    assert last["sampled_reward"] > first["sampled_reward"] + 0.2
    assert torch.tensor([row["test_error"] for row in rows[-2:]]).max() <= 0.25
