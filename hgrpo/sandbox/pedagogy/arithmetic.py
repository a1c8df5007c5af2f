"""The task hinted_arithmetic: sums modulo n. The teacher's prompt contains the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from hgrpo.sandbox import draws
from hgrpo.sandbox.nets.transformer import Transformer
from hgrpo.sandbox.pedagogy.settings import PedagogySettings
from hgrpo.sandbox.policies import SequencePolicy

View = Literal["student", "teacher"]


class Questions(NamedTuple):
    """Prompts of student and teacher, int64 [S, N, L], and answers, int64 [S, N, answer_len]."""

    prompts: dict[View, Tensor]
    answers: Tensor


@dataclass(frozen=True)
class HintedArithmetic:
    """Given numbers x0, x1 below n, the answer is the tokens x0 + x1, x0 + 2 x1, ... modulo n.

    An output must end with the answer; the tokens before the answer are not constrained. The
    student's prompt is [x0, x1, QUERY], and the teacher's is [x0, x1, HINT, answer, QUERY].
    """

    settings: PedagogySettings
    name = "hinted_arithmetic"

    @property
    def modulus(self) -> int:
        return self.settings.content_vocab_size

    @property
    def actions(self) -> int:
        """Size of the vocabulary: the numbers, QUERY and HINT."""
        return self.modulus + 2

    @property
    def scratch(self) -> int:
        """Number of tokens before the answer."""
        return self.settings.completion_len - self.settings.answer_len

    def policy(self) -> SequencePolicy:
        s = self.settings
        length = 4 + s.answer_len + s.completion_len
        net = Transformer(self.actions, length, s.d_model, s.nhead, s.num_layers)
        return SequencePolicy(net, s.completion_len)

    @cached_property
    def everything(self) -> Questions:
        """All n^2 inputs, with a seed axis of size 1."""
        numbers = torch.arange(self.modulus)
        return self.questions(torch.cartesian_prod(numbers, numbers).unsqueeze(0))

    def draw(
        self, seeds: Sequence[int], purpose: draws.Purpose, name: Sequence[object], count: int
    ) -> Questions:
        """Draw `count` inputs for each seed; `name` selects the random stream."""
        return self.questions(draws.integers(seeds, purpose, name, (count, 2), self.modulus))

    def questions(self, inputs: Tensor) -> Questions:
        """Return the prompts and answers for inputs [S, N, 2]."""
        times = torch.arange(1, self.settings.answer_len + 1)
        answers = (inputs[..., :1] + times * inputs[..., 1:]) % self.modulus
        query = torch.full_like(inputs[..., :1], self.modulus)
        hint = torch.full_like(query, self.modulus + 1)
        student = torch.cat([inputs, query], -1)
        return Questions(
            {"student": student, "teacher": torch.cat([inputs, hint, answers, query], -1)}, answers
        )

    def rewards(self, actions: Tensor, answers: Tensor) -> Tensor:
        """Rewards [...] of actions [..., T]: 1 if the last tokens are the answer, else 0."""
        return (actions[..., -answers.shape[-1] :] == answers).all(-1).float()
