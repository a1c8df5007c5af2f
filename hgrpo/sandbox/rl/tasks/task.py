"""The interface of tasks, and expectations over a policy's outputs."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from hgrpo.formulas.batch import Questions
from hgrpo.sandbox.policies import Policy, Sampled
from hgrpo.sandbox.rl.settings import MOST_OUTPUTS, RlSettings
from hgrpo.sandbox.tasks import REVERSALS

# Number of outputs per forward pass, summed over seeds. Memory access slows down larger passes.
_AT_ONCE = 2_000


class Task(Protocol):
    """A task with inputs, actions and rewards.

    Actions and labels are int64 tensors whose last axis has length T. Rewards have no such axis.
    `scored` [T] is 1 for positions that affect the reward. `separator` is an action that is never
    right, or None if the task has no such action.
    """

    actions: int
    horizon: int
    scored: Tensor
    separator: int | None
    # Whether every reward is 0 or 1.
    binary: bool

    def policy(self) -> Policy: ...

    def draw(self, seeds: Sequence[int], step: object, count: int) -> Questions:
        """Draw `count` inputs for each seed; `step` selects the random stream."""
        ...

    def examination(self) -> tuple[Questions, bool]:
        """Inputs of an evaluation (seed axis of size 1), and whether these are all inputs."""
        ...

    def rewards(self, actions: Tensor, labels: Tensor) -> Tensor: ...

    def right(self, actions: Tensor, labels: Tensor) -> Tensor:
        """Whether all scored positions of a sample are right; bool."""
        ...

    def errors(self, actions: Tensor, labels: Tensor) -> Mapping[str, Tensor]:
        """Columns of the log, such as `test_error`; each has the same shape as the rewards."""
        ...

    def more(self, greedy: Sampled, questions: Questions) -> dict[str, Tensor]:
        """Additional columns [S] of an evaluation."""
        ...

    def stated(self, policy: Policy, weights: Tensor, questions: Questions) -> Tensor | None:
        """E[R | input] of the policy [S, N] in closed form; None if there is no closed form."""
        ...

    def adjust(self, rewards: Tensor, sampled: Sampled, questions: Questions) -> Tensor:
        """Rewards [S, N, K] minus the task's penalty, such as a KL penalty."""
        ...


class Bandit:
    """A task in which an output is a single action. The reward is 1 for a right action, else 0."""

    horizon = 1
    separator = None

    @property
    def scored(self) -> Tensor:
        return torch.ones(1)

    def rewards(self, actions: Tensor, labels: Tensor) -> Tensor:
        return self.right(actions, labels).float()

    def right(self, actions: Tensor, labels: Tensor) -> Tensor:
        return (actions == labels).squeeze(-1)

    def errors(self, actions: Tensor, labels: Tensor) -> Mapping[str, Tensor]:
        return {"test_error": 1.0 - self.rewards(actions, labels)}

    def more(self, greedy: Sampled, questions: Questions) -> dict[str, Tensor]:
        return {}

    def adjust(self, rewards: Tensor, sampled: Sampled, questions: Questions) -> Tensor:
        return rewards


def make_task(settings: RlSettings) -> Task:
    """Create the configured task.

    Raises:
        UserError: data or model is missing.
    """
    if settings.task == "mnist":
        from hgrpo.sandbox.rl.tasks.digits import Digits

        return Digits.load(settings)
    if settings.task == "lm_bandit":
        from hgrpo.sandbox.rl.tasks.lm import LmBandit

        return LmBandit.load(settings)
    from hgrpo.sandbox.tasks.sequences import SequenceTask

    s = settings
    binary = s.binary_reward and s.task in REVERSALS
    return SequenceTask(s.task, s.vocab_size, s.seq_len, s, s.score_len, binary)


def output_count(task: Task) -> int:
    """Number of possible action sequences."""
    return task.actions**task.horizon


def can_list(task: Task) -> bool:
    """Whether there are few enough outputs to sum over all of them."""
    return output_count(task) <= MOST_OUTPUTS


def every_output(
    task: Task, policy: Policy, weights: Tensor, questions: Questions
) -> tuple[Tensor, Tensor]:
    """Probabilities and rewards of all outputs, [S, N, O] each.

    Probabilities are differentiable; rewards are not. Rewards are noise-free and include the task's
    penalty under `weights`.
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
    """E[R | input] [S, N]: the task's closed form, or the sum over all outputs."""
    stated = task.stated(policy, weights, questions)
    if stated is not None:
        return stated
    chances, rewards = every_output(task, policy, weights, questions)
    return (chances * rewards).sum(-1)
