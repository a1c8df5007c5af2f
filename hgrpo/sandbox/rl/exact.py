"""Expectations over a policy, exact where its outputs can be listed."""

import torch
from torch import Tensor

from hgrpo.sandbox.policies import Policy
from hgrpo.sandbox.rl.settings import MOST_OUTPUTS
from hgrpo.sandbox.rl.tasks.task import Task
from hgrpo.sandbox.rollout import Questions

# Outputs of all seeds that are scored in one pass; with more, memory is slower.
_AT_ONCE = 2_000


def output_count(task: Task) -> int:
    """How many sequences of actions there are."""
    return task.actions**task.horizon


def can_list(task: Task) -> bool:
    """Whether outputs are few enough to add up over all of them."""
    return output_count(task) <= MOST_OUTPUTS


def every_output(
    task: Task, policy: Policy, weights: Tensor, questions: Questions
) -> tuple[Tensor, Tensor]:
    """The chance of every output, with its gradient, and what it earns, [S, N, O] each.

    Rewards are without noise, and less what the task charges under `weights`; they have no
    gradient.
    """
    seeds, count = questions.labels.shape[:2]
    size = max(1, _AT_ONCE // (seeds * output_count(task)))
    chances, rewards = [], []
    for begin in range(0, count, size):
        some = Questions(*(each[:, begin : begin + size] for each in questions))
        done = policy.listed(weights, some.inputs)
        chances.append(done.logprobs.sum((-1, -2)).exp())
        earned = task.rewards(done.actions, some.labels[:, :, None, None])[..., 0]
        rewards.append(task.adjust(earned, done, some))
    return torch.cat(chances, 1), torch.cat(rewards, 1)


@torch.no_grad()
def expected_rewards(task: Task, policy: Policy, weights: Tensor, questions: Questions) -> Tensor:
    """E[R | input] [S, N]: stated by the task, or added up over all outputs."""
    stated = task.stated(policy, weights, questions)
    if stated is not None:
        return stated
    chances, rewards = every_output(task, policy, weights, questions)
    return (chances * rewards).sum(-1)
