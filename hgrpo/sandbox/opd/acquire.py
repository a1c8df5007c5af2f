"""Samples batches from the student, and computes the teacher's log-probs at every prefix."""

import torch
from torch import Tensor

from hgrpo.formulas.batch import Questions, Rollout, Seen
from hgrpo.sandbox import draws
from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.opd.tasks import DistillTask
from hgrpo.sandbox.policies import Policy

VIEW = "student"


def sample(
    settings: OpdSettings, task: DistillTask, policy: Policy, weights: Tensor, step: int
) -> Rollout:
    """Sample the batch of a training step, with one rollout per input; `weights` are [S, P]."""
    seeds = settings.seeds
    questions = task.sequences.draw(seeds, step, settings.batch_size)
    shape = (settings.batch_size, 1, 1, settings.seq_len)
    uniform = draws.uniform(seeds, "action", (step,), shape)
    return answer(task, policy, weights, questions, uniform)


@torch.no_grad()
def answer(
    task: DistillTask, policy: Policy, weights: Tensor, questions: Questions, uniform: Tensor
) -> Rollout:
    """Sample rollouts [S, N, 1, 1, T] for the questions; `uniform` are draws of this shape."""
    sampled = policy.sample(weights, questions.inputs, uniform)
    return build(task, questions, sampled.actions, sampled.logprobs)


def build(task: DistillTask, questions: Questions, actions: Tensor, behaviour: Tensor) -> Rollout:
    """Build a batch from actions and the log-probs they were sampled with, [S, N, 1, 1, T]."""
    rewards = task.sequences.rewards(actions, questions.labels[:, :, None, None])[..., 0]
    return Rollout(
        inputs={VIEW: questions.inputs},
        actions=actions,
        behaviour=behaviour,
        rewards=rewards,
        clean=rewards,
        mask=torch.ones_like(behaviour),
        keep=torch.ones_like(rewards),
        age=torch.zeros(len(actions), dtype=torch.int64),
        labels=questions.labels,
        extras={"teacher": task.teacher(questions.labels)},
    )


def see(batch: Rollout, policy: Policy, weights: Tensor) -> Seen:
    """Compute the log-probs of the batch under `weights` [S, P]."""
    table = policy.table(weights, batch.inputs[VIEW], batch.actions)
    return Seen(batch, table, table.new_zeros(()), table.new_ones(table.shape[-2]))
