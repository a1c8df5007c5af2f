"""The three tasks: sequences, with a teacher that knows the right answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.opd.teachers import teacher_table
from hgrpo.sandbox.tasks.questions import Questions
from hgrpo.sandbox.tasks.sequences import SequenceTask

# Of inputs that are too many to list, an evaluation reads so many, the same ones every time.
_DRAWN_INPUTS = 256


@dataclass(frozen=True)
class DistillTask:
    """The task and the teacher that the settings name."""

    settings: OpdSettings

    @cached_property
    def sequences(self) -> SequenceTask:
        """Inputs, right answers and rewards."""
        s = self.settings
        name = "format_answer" if s.task == "format_answer" else "token_reversal"
        return SequenceTask(name, s.vocab_size, s.seq_len, s)

    @cached_property
    def _teacher(self) -> Tensor:
        return teacher_table(self.settings)

    def teacher(self, labels: Tensor) -> Tensor:
        """The teacher's log-probs [S, N, 1, 1, T, V] of right answers [S, N, T]."""
        return self._teacher[labels][:, :, None, None]

    def examination(self, seeds: Sequence[int]) -> Questions:
        """Inputs of an evaluation, the same for all seeds: all of them, or some that were drawn."""
        asked, listed = self.sequences.examination()
        kept = None if listed else _DRAWN_INPUTS
        return Questions(*(each[:, :kept].expand(len(seeds), -1, -1) for each in asked))
