"""Defines three sequence tasks and their teacher, which is computed from the right answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from hgrpo.formulas.batch import Questions
from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.tasks.sequences import SequenceTask

# If there are too many inputs to evaluate all, evaluations use a fixed sample of this size.
_DRAWN_INPUTS = 256
# The weight of content token a is multiplied by 1 + _STEP * a, so that all weights differ.
_STEP = 1e-3


@dataclass(frozen=True)
class DistillTask:
    """A task with its teacher, as configured."""

    settings: OpdSettings

    @cached_property
    def sequences(self) -> SequenceTask:
        """Inputs, right answers and rewards."""
        s = self.settings
        name = "format_answer" if s.task == "format_answer" else "token_reversal"
        return SequenceTask(name, s.vocab_size, s.seq_len, s)

    @cached_property
    def _teacher(self) -> Tensor:
        """The teacher's log-probs [V, V], which depend only on the right token."""
        s = self.settings
        if s.task == "soft_reversal":
            return graded(s.vocab_size, s.actions, s.teacher_temperature, s.special_token_weight)
        return smoothed(s.actions, s.teacher_epsilon)

    def teacher(self, labels: Tensor) -> Tensor:
        """The teacher's log-probs [S, N, 1, 1, T, V], given the right answers [S, N, T]."""
        return self._teacher[labels][:, :, None, None]

    def examination(self, seeds: Sequence[int]) -> Questions:
        """Inputs of evaluations, the same for all seeds: all inputs, or a fixed sample."""
        questions, listed = self.sequences.examination()
        count = None if listed else _DRAWN_INPUTS
        return Questions(*(each[:, :count].expand(len(seeds), -1, -1) for each in questions))


def smoothed(actions: int, epsilon: float) -> Tensor:
    """Probability 1 - epsilon for the right token, and epsilon shared equally by all others."""
    table = torch.full((actions, actions), epsilon / (actions - 1), dtype=torch.float64)
    return table.fill_diagonal_(1.0 - epsilon).log().float()


def graded(content: int, actions: int, temperature: float, special: float) -> Tensor:
    """Probabilities that decrease with the circular distance from the correct content token.

    The weight of content token a at distance d is exp(-d / temperature) (1 + 0.001 a). Tokens that
    are not content have the weight `special`.
    """
    ids = torch.arange(content, dtype=torch.float64)
    apart = (ids.unsqueeze(0) - ids.unsqueeze(1)).abs()
    near = torch.exp(-torch.minimum(apart, content - apart) / temperature) * (1.0 + _STEP * ids)
    weights = torch.full((actions, actions), special, dtype=torch.float64)
    weights[:content, :content] = near
    return (weights / weights.sum(-1, keepdim=True)).log().float()
