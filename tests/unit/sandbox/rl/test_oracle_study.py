"""The per-sample oracle study, sample by sample."""

import pytest
import torch
from small_runs import batch_of, settings

from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rl.oracle_study import correlations, projections, samples, study
from hgrpo.sandbox.rl.train import Trainer


@pytest.mark.parametrize("changes", [{}, {"method": "GRPO"}])
def test_a_projection_is_the_product_of_two_gradients(changes, monkeypatch):
    monkeypatch.setattr("hgrpo.sandbox.rl.oracle_study._AT_ONCE", 5)
    trainer = Trainer(settings(**{"method": "REINFORCE"} | changes))
    batch = batch_of(trainer)
    products = projections(trainer, batch)
    weights = trainer.weights.clone().requires_grad_()
    labels = batch.labels[:, :, None, None]
    inputs = batch.inputs["policy"]
    loss = -taken(trainer.policy.table(weights, inputs, labels), labels).mean((1, 2, 3, 4)).sum()
    (oracle,) = torch.autograd.grad(loss, weights)
    logprobs = taken(trainer.policy.table(weights, inputs, batch.actions), batch.actions)
    for seed, sample in ((0, 0), (0, 6), (1, 15)):
        one = logprobs[seed].flatten(0, 1)[sample].sum()
        (score,) = torch.autograd.grad(one, weights, retain_graph=True)
        expected = -(score[seed] * oracle[seed]).sum().item()
        assert products[seed, sample].item() == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_the_sign_says_that_right_answers_help():
    rows = samples(Trainer(settings("REINFORCE", seq_len=1, batch_size=64)))
    right = [row["projection"] for row in rows if row["reward"] == 1]
    wrong = [row["projection"] for row in rows if row["reward"] == 0]
    assert sum(right) / len(right) > 0 > sum(wrong) / len(wrong)
    one = rows[0]
    assert one["update_projection"] == pytest.approx(one["advantage"] * one["projection"])
    # With one token, delight is advantage times surprisal.
    assert one["delight"] == pytest.approx(one["advantage"] * one["surprisal"], abs=1e-6)


def test_a_study_has_a_row_for_each_sample_and_step():
    rows = study(Trainer(settings("REINFORCE")), (2, 0))
    assert [(row["step"], row["seed"]) for row in rows[::16]] == [(0, 0), (0, 1), (2, 0), (2, 1)]
    assert len(rows) == 64
    lines = correlations(rows)
    pairs = torch.tensor([[row["delight"], row["projection"]] for row in rows[:16]]).T
    assert lines[0]["corr_delight_projection"] == pytest.approx(torch.corrcoef(pairs)[0, 1].item())
    assert len(lines) == 4
