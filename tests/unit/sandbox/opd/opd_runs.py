"""Small runs of opd for tests."""

import torch

from hgrpo.formulas.batch import Questions
from hgrpo.sandbox.every import every
from hgrpo.sandbox.opd import acquire
from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.opd.train import Trainer

SMALL = {
    "batch_size": 16,
    "seeds": (0, 1),
    "eval_every": 2,
    "num_steps": 4,
    "vocab_size": 3,
    "seq_len": 3,
    "d_model": 16,
    "allow_degenerate": True,
}


def settings(method: str = "OPDReverseKL", rule: dict | None = None, **changes) -> OpdSettings:
    """A small run of the loss."""
    phases = {"phases": ({"method": method, "rule": rule or {}},)}
    return OpdSettings(**SMALL | phases | changes)


def gradient(trainer: Trainer, batch) -> torch.Tensor:
    """Gradient [S, P] of the first phase's loss on a batch."""
    weights = trainer.weights.clone().requires_grad_()
    phase = trainer.settings.phases[0]
    loss = phase.rule.term(acquire.see(batch, trainer.policy, weights)).loss
    return torch.autograd.grad(loss.sum(), weights)[0]


def batch_of(trainer: Trainer):
    return acquire.sample(trainer.settings, trainer.task, trainer.policy, trainer.weights, 0)


def every_rollout(task, policy, weights: torch.Tensor):
    """All pairs of input and output as batches [R, 1, 1, 1, T], and their chances [R].

    `weights` are [1, P]; the batches are seeds of their own, so that each has its own gradient.
    """
    outputs = every(task.sequences.actions, task.sequences.horizon)
    inputs = every(task.settings.vocab_size, task.settings.seq_len)
    questions = task.sequences.questions(inputs.repeat_interleave(len(outputs), 0).unsqueeze(0))
    actions = outputs.repeat(len(inputs), 1)[None, :, None, None]
    table = policy.table(weights, questions.inputs, actions)
    behaviour = table.gather(-1, actions.unsqueeze(-1)).squeeze(-1).detach()
    chances = behaviour[0].sum((-1, -2, -3)).exp() / len(inputs)
    one = Questions(*(each[0].unsqueeze(1) for each in questions))
    batch = acquire.build(task, one, actions[0].unsqueeze(1), behaviour[0].unsqueeze(1))
    return batch, chances
