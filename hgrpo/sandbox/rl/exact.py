"""Expectations over a policy, exact where its outputs can be listed."""

import torch
from torch import Tensor

from hgrpo.sandbox.policies import Policy, taken
from hgrpo.sandbox.rl.tasks.task import Task
from hgrpo.sandbox.tasks.questions import Questions
from hgrpo.sandbox.tasks.sequences import every

# Outputs of all seeds that are scored in one pass, see `evaluate`.
_AT_ONCE = 2_000


def all_outputs(task: Task) -> Tensor:
    """Every sequence of actions, int64 [O, T]."""
    return every(task.actions, task.horizon)


@torch.no_grad()
def output_logprobs(task: Task, policy: Policy, weights: Tensor, inputs: Tensor) -> Tensor:
    """Log-probs [S, N, O] of every output for inputs [S, N, ...]."""
    outputs = all_outputs(task)
    seeds, count = inputs.shape[:2]
    size = max(1, _AT_ONCE // (seeds * len(outputs)))
    parts = []
    for begin in range(0, count, size):
        some = inputs[:, begin : begin + size]
        actions = outputs[None, None, :, None].expand(seeds, some.shape[1], -1, -1, -1)
        parts.append(taken(policy.table(weights, some, actions), actions).sum(-1)[..., 0])
    return torch.cat(parts, 1)


def expected_rewards(task: Task, policy: Policy, weights: Tensor, questions: Questions) -> Tensor:
    """E[R | input] [S, N]: stated by the task, or added up over all outputs."""
    stated = task.stated(policy, weights, questions)
    if stated is not None:
        return stated
    chances = output_logprobs(task, policy, weights, questions.inputs).exp()
    rewards = task.rewards(all_outputs(task), questions.labels.unsqueeze(2))
    return (chances * rewards).sum(-1)
