"""Small runs of rl for tests: settings that fit each rule, a file of digits, gradients."""

from pathlib import Path

import numpy as np
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


def write_digits(path: Path) -> Path:
    """An .npz like MNIST's, with ten patterns under noise."""
    numbers = np.random.default_rng(0)
    patterns, digits = numbers.normal(size=(10, 64)), numbers.integers(0, 10, 500)
    pictures = patterns[digits] + 0.3 * numbers.normal(size=(500, 64))
    pixels = np.interp(pictures, (pictures.min(), pictures.max()), (0, 255)).astype(np.uint8)
    arrays = {"x_train": pixels[:400], "y_train": digits[:400]}
    np.savez(path, **arrays, x_test=pixels[400:], y_test=digits[400:])
    return path


def settings(method: str, data: Path | None = None, **changes: object) -> RlSettings:
    """A small run of the method, with what the method needs."""
    needs, given = RULES[method].needs, dict(SMALL)
    if {"bandit", "digits"} & set(needs):
        given |= {"task": "mnist", "data": str(data)}
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
