"""Small runs of rl for tests: settings that fit each rule, and gradients."""

from pathlib import Path

import torch

from hgrpo.formulas.batch import Rollout
from hgrpo.sandbox.every import every
from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rl import acquire
from hgrpo.sandbox.rl.settings import RULES, RlSettings
from hgrpo.sandbox.rl.tasks.task import expected_rewards
from hgrpo.sandbox.rl.train import Trainer

SMALL = {
    "task": "token_reversal",
    "batch_size": 16,
    "seeds": (0, 1),
    "eval_every": 2,
    "num_steps": 4,
    "seq_len": 3,
    "d_model": 16,
    "allow_degenerate": True,
}


def settings(method: str, digits: Path | None = None, **changes: object) -> RlSettings:
    """A small run of the method, with what the method needs and the task reads."""
    needs, values = RULES[method].needs, dict(SMALL)
    if {"bandit", "digits"} & set(needs):
        values |= {"task": "mnist", "data": str(digits)}
    if "right_or_wrong" in needs:
        values["binary_reward"] = True
    if "replay" in needs or "ages" in needs:
        values["replay_capacity"] = 3
    task = changes.get("task", values["task"])
    unread = {"mnist": ("seq_len", "d_model"), "lm_bandit": ("seq_len",)}.get(task, ())
    values = {key: value for key, value in values.items() if key not in unread}
    if task == "masked_reversal":
        values["score_len"] = 2
    return RlSettings(method=method, **values | changes)


def gradient(trainer: Trainer, batch, weights: torch.Tensor | None = None) -> torch.Tensor:
    """Gradient [S, P] of the rule's loss on a batch."""
    weights = (trainer.weights if weights is None else weights).clone().requires_grad_()
    loss = trainer.rule.term(trainer.see(batch, weights)).loss
    return torch.autograd.grad(loss.sum(), weights)[0]


def batch_of(trainer: Trainer, step: int = 0):
    return acquire.sample(trainer.settings, trainer.task, trainer.policy, trainer.weights, step)


def every_group(trainer: Trainer, sampler: torch.Tensor, size: int = 1):
    """Every input with every group of `size` outputs, as R batches of one group, and their chances.

    Each batch is a seed of its own, so that it has its own gradient. `sampler` [1, P] are the
    weights of the policy that sampled; the chances [R] add up to 1.
    """
    task, policy = trainer.task, trainer.policy
    outputs = every(task.actions, task.horizon)
    groups = outputs[every(len(outputs), size)]
    inputs = every(task.vocabulary, task.horizon)
    questions = task.questions(inputs.repeat_interleave(len(groups), 0).unsqueeze(1))
    actions = groups.repeat(len(inputs), 1, 1)[:, None, :, None]
    weights = sampler.expand(len(actions), -1)
    with torch.no_grad():
        table = policy.table(weights, questions.inputs, actions)
    behaviour = taken(table, actions)
    rewards = task.rewards(actions, questions.labels[:, :, None, None])[..., 0]
    batch = Rollout(
        inputs={acquire.VIEW: questions.inputs},
        actions=actions,
        behaviour=behaviour,
        rewards=rewards,
        clean=rewards,
        mask=torch.ones_like(behaviour),
        keep=torch.ones_like(rewards),
        age=torch.zeros(len(actions), dtype=torch.int64),
        labels=questions.labels,
        expected=expected_rewards(task, policy, weights, questions),
    )
    return batch, behaviour.flatten(1).sum(1).exp() / len(inputs)


def mean_gradient(trainer: Trainer, weights: torch.Tensor, sampler: torch.Tensor, size: int = 1):
    """The rule's mean gradient [P] at `weights` [1, P], over all groups that `sampler` may draw."""
    batch, chances = every_group(trainer, sampler, size)
    gradients = gradient(trainer, batch, weights.expand(len(chances), -1))
    return (chances.unsqueeze(1) * gradients).sum(0)


def true_gradient(trainer: Trainer, weights: torch.Tensor) -> torch.Tensor:
    """Gradient [P] of -E[R], averaged over all inputs, at `weights` [1, P]."""
    weights = weights.clone().requires_grad_()
    questions, _ = trainer.task.examination()
    outputs = every(trainer.task.actions, trainer.task.horizon)
    actions = outputs[None, None, :, None].expand(1, questions.inputs.shape[1], -1, -1, -1)
    chances = taken(trainer.policy.table(weights, questions.inputs, actions), actions).sum(-1).exp()
    rewards = trainer.task.rewards(outputs, questions.labels.unsqueeze(2))
    loss = -(chances[..., 0] * rewards).sum(-1).mean()
    return torch.autograd.grad(loss, weights)[0][0]
