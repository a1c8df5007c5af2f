"""A run of rl: what it reads, shares and learns, and when a seed stops."""

import torch
from small_runs import settings

from hgrpo.sandbox.nets.transformer import Transformer
from hgrpo.sandbox.rl.train import Trainer


def test_the_first_update_uses_what_sampling_has_read(monkeypatch):
    """Each step reads its inputs once, and the update is that of inputs that are read again."""
    once, again = (Trainer(settings("DG", eval_every=100)) for _ in range(2))
    again.policy = again.policy.policy
    reads = []
    read = Transformer.read
    monkeypatch.setattr(Transformer, "read", lambda *words: reads.append(1) or read(*words))
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


def test_training_solves_a_short_task():
    run = settings("GRPO", num_steps=60, batch_size=64, seq_len=2, eval_every=100, lr=3e-3)
    rows = Trainer(run).run()
    first, last = rows[0], rows[-2]
    assert last["sampled_reward"] > first["sampled_reward"] + 0.2
    assert torch.tensor([row["test_error"] for row in rows[-2:]]).max() <= 0.25
