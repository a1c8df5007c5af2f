"""What the trainer and the evaluation ask of a task."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from hgrpo.sandbox.policies import Policy, Sampled
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rollout import Questions


class Task(Protocol):
    """Actions and labels are int64 with T last; rewards lose that axis.

    `scored` [T] is 1 where the reward reads the position. `separator` is the action that is never
    right, or None.
    """

    actions: int
    horizon: int
    scored: Tensor
    separator: int | None
    # Whether every reward is 0 or 1.
    binary: bool

    def policy(self) -> Policy: ...

    def draw(self, seeds: Sequence[int], step: object, count: int) -> Questions:
        """`count` inputs for each seed; `step` names the draw."""
        ...

    def examination(self) -> tuple[Questions, bool]:
        """Inputs of an evaluation with one seed's axis, and whether they are all there are."""
        ...

    def rewards(self, actions: Tensor, labels: Tensor) -> Tensor: ...

    def right(self, actions: Tensor, labels: Tensor) -> Tensor:
        """Whether a sample is wholly right, as far as the reward reads it; bool."""
        ...

    def errors(self, actions: Tensor, labels: Tensor) -> Mapping[str, Tensor]:
        """By column of the log, such as `test_error`; each in the shape of the rewards."""
        ...

    def more(self, greedy: Sampled, questions: Questions) -> dict[str, Tensor]:
        """Further columns [S] of an evaluation."""
        ...

    def stated(self, policy: Policy, weights: Tensor, questions: Questions) -> Tensor | None:
        """E[R | input] [S, N] of the policy in closed form; None if there is none."""
        ...

    def adjust(self, rewards: Tensor, sampled: Sampled, questions: Questions) -> Tensor:
        """Rewards [S, N, K], less what the task charges, such as a KL to the first policy."""
        ...


class Bandit:
    """A task of one action, which is right or wrong and charges nothing."""

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
    """The task that the settings name.

    Raises:
        UserError: its data or its model is missing.
    """
    if settings.task == "mnist":
        from hgrpo.sandbox.rl.tasks.digits import Digits

        return Digits.load(settings)
    if settings.task == "lm_bandit":
        from hgrpo.sandbox.rl.tasks.lm import LmBandit

        return LmBandit.load(settings)
    from hgrpo.sandbox.tasks.sequences import SequenceTask

    s = settings
    return SequenceTask(s.task, s.vocab_size, s.seq_len, s, s.score_len, s.binary_reward)
