"""An evaluation against a plain sum over inputs and outputs."""

import itertools
import math

import pytest
import torch
from small_runs import settings

from hgrpo.sandbox import draws
from hgrpo.sandbox.rl.train import Trainer


def by_hand(trainer, seed):
    """Every column, input by input and output by output, with plain numbers."""
    vocabulary, length = 2, trainer.task.horizon
    sums = dict.fromkeys(
        ("test_error", "greedy_reward", "sampled_reward", "sampled_error", "sequence_entropy")
        + ("kl_from_init", "sep_probability"),
        0.0,
    )
    inputs = list(itertools.product(range(vocabulary), repeat=length))
    for tokens in inputs:
        questions = trainer.task.questions(torch.tensor([[list(tokens)]] * 2))
        answer = list(tokens[::-1])

        def row(weights, prefix, questions=questions):
            tokens = torch.tensor([*prefix, *[0] * (length - len(prefix))]).view(1, 1, 1, 1, -1)
            table = trainer.policy.table(
                weights, questions.inputs, tokens.expand(2, 1, 1, 1, length)
            )
            return table[seed, 0, 0, 0, len(prefix)].exp().tolist()

        likeliest = []
        for _ in range(length):
            chances = row(trainer.weights, likeliest)
            likeliest.append(chances.index(max(chances)))
        share = sum(a == b for a, b in zip(likeliest, answer, strict=True)) / length
        sums["test_error"] += 1 - share
        sums["greedy_reward"] += share
        for output in itertools.product(range(vocabulary + 1), repeat=length):
            chance, before, separators = 1.0, 1.0, 0.0
            for place, token in enumerate(output):
                now = row(trainer.weights, output[:place])
                chance *= now[token]
                before *= row(trainer.first, output[:place])[token]
                separators += now[vocabulary] / length
            right = sum(a == b for a, b in zip(output, answer, strict=True)) / length
            sums["sampled_reward"] += chance * right
            sums["sampled_error"] += chance * (1 - right)
            sums["sequence_entropy"] -= chance * math.log(chance)
            sums["kl_from_init"] += chance * math.log(chance / before)
            sums["sep_probability"] += chance * separators
    return {name: total / len(inputs) for name, total in sums.items()}


def test_an_evaluation_is_the_sum_over_inputs_and_outputs():
    trainer = Trainer(settings("DG", seq_len=2, lr=0.03))
    for _ in range(3):
        trainer.take_step()
    assert trainer.examiner.lists_outputs
    columns = trainer.examiner.examine(trainer.weights, 3)
    for seed in range(2):
        expected = by_hand(trainer, seed)
        assert {name: columns[name][seed].item() for name in expected} == pytest.approx(
            expected, abs=1e-5
        )
        assert columns["policy_entropy"][seed].item() == pytest.approx(
            expected["sequence_entropy"] / 2, abs=1e-5
        )


def test_drawn_outputs_agree_with_listed_ones(monkeypatch):
    trainer = Trainer(settings("DG", seq_len=4, vocab_size=3, lr=0.03))
    trainer.take_step()
    drawn = trainer.examiner.examine(trainer.weights, 1)
    assert not trainer.examiner.lists_outputs
    monkeypatch.setattr("hgrpo.sandbox.rl.evaluate._MOST_PAIRS", 10**6)
    listed = trainer.examiner.examine(trainer.weights, 1)
    assert drawn["test_error"].equal(listed["test_error"])
    for name in ("sampled_reward", "policy_entropy", "sep_probability", "kl_from_init"):
        assert torch.allclose(drawn[name], listed[name], atol=0.08), name


def trained(steps, **changes):
    trainer = Trainer(settings("DG", lr=0.03, eval_every=1000, **changes))
    for _ in range(steps):
        trainer.take_step()
    return trainer


@pytest.mark.parametrize(("vocabulary", "compat"), [(3, "none"), (2, "reference")])
def test_a_drawn_evaluation_follows_one_output_of_each_input(vocabulary, compat):
    trainer = trained(10, seq_len=4, vocab_size=vocabulary, compat=compat)
    assert not trainer.examiner.lists_outputs
    columns = trainer.examiner.examine(trainer.weights, 7)
    questions = trainer.examiner.questions(7)
    shape = (*questions.labels.shape[1:2], 1, 1, 4)
    uniform = draws.uniform((0, 1), "evaluation", (7,), shape)
    actions = torch.zeros_like(uniform, dtype=torch.int64)
    for place in range(4):
        table = trainer.policy.table(trainer.weights, questions.inputs, actions)
        actions[..., place] = draws.pick(table[..., place, :], uniform[..., place])
    before = trainer.policy.table(trainer.first, questions.inputs, actions)
    right = actions[:, :, 0, 0] == questions.inputs[..., :4].flip(-1)
    expected = {
        "sampled_reward": right.float(),
        "sampled_error": 1 - right.float(),
        "policy_entropy": -(table.exp() * table).sum(-1),
        "kl_from_init": 4 * (table.exp() * (table - before)).sum(-1),
        "sep_probability": table[..., vocabulary].exp(),
    }
    for name, values in expected.items():
        assert torch.allclose(columns[name], values.flatten(1).mean(1), atol=1e-5), name
    assert not columns["sampled_reward"].equal(columns["sampled_reward"].flip(0))
    other = trainer.examiner.examine(trainer.weights, 8)
    assert not other["sampled_reward"].equal(columns["sampled_reward"])
    same_inputs = trainer.examiner.questions(8).inputs.equal(questions.inputs)
    assert same_inputs == (compat == "none")


def test_listed_outputs_of_inputs_that_are_drawn_anew():
    trainer = trained(10, seq_len=1, compat="reference")
    assert trainer.examiner.lists_outputs
    trainer.examiner.examine(trainer.weights, 0)
    columns = trainer.examiner.examine(trainer.weights, 7)
    questions = trainer.examiner.questions(7)
    any_action = torch.zeros(2, questions.inputs.shape[1], 1, 1, 1, dtype=torch.int64)
    now, before = (
        trainer.policy.table(weights, questions.inputs, any_action)[:, :, 0, 0, 0]
        for weights in (trainer.weights, trainer.first)
    )
    divergence = (now.exp() * (now - before)).sum(-1).mean(1)
    assert torch.allclose(columns["kl_from_init"], divergence, atol=1e-5)
    earned = now.exp().gather(-1, questions.labels).mean((1, 2))
    assert torch.allclose(columns["sampled_reward"], earned, atol=1e-5)


@pytest.mark.parametrize("vocabulary", [2, 3])
def test_parts_of_the_inputs_add_up(monkeypatch, vocabulary):
    changes = {"seq_len": 4, "vocab_size": vocabulary, "task": "masked_reversal"}
    trainer, other = (Trainer(settings("DG", **changes)) for _ in range(2))
    assert trainer.examiner.lists_outputs == (vocabulary == 2)
    whole = trainer.examiner.examine(trainer.weights, 0)
    monkeypatch.setattr("hgrpo.sandbox.rl.evaluate._DRAWN_AT_ONCE", 5)
    monkeypatch.setattr("hgrpo.sandbox.rl.evaluate._LISTED_AT_ONCE", 5 * 81)
    parts = other.examiner.examine(other.weights, 0)
    assert all(torch.allclose(parts[name], whole[name], atol=1e-5) for name in whole)
