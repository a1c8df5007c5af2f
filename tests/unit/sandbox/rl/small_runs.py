"""Small runs of rl for tests: settings that fit each rule, and gradients."""

from pathlib import Path

import torch

from hgrpo.sandbox.rl import acquire
from hgrpo.sandbox.rl.declared import RULES
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.train import Trainer

SMALL = {
    "task": "token_reversal",
    "batch_size": 16,
    "seeds": (0, 1),
    "eval_every": 2,
    "num_steps": 4,
    "seq_len": 3,
    "score_len": 2,
    "d_model": 16,
    "allow_degenerate": True,
}


def settings(method: str, digits: Path | None = None, **changes: object) -> RlSettings:
    """A small run of the method, with what the method needs."""
    needs, given = RULES[method].needs, dict(SMALL)
    if {"bandit", "digits"} & set(needs):
        given |= {"task": "mnist", "data": str(digits)}
    if "right_or_wrong" in needs:
        given["binary_reward"] = True
    if "replay" in needs or "ages" in needs:
        given["replay_capacity"] = 3
    return RlSettings(method=method, **given | changes)


def gradient(trainer: Trainer, batch, weights: torch.Tensor | None = None) -> torch.Tensor:
    """Gradient [S, P] of the rule's loss on a batch."""
    weights = (trainer.weights if weights is None else weights).clone().requires_grad_()
    loss = trainer.term(trainer.see(batch, weights), trainer.own).loss
    return torch.autograd.grad(loss.sum(), weights)[0]


def batch_of(trainer: Trainer, step: int = 0):
    return acquire.sample(trainer.settings, trainer.task, trainer.policy, trainer.weights, step)
