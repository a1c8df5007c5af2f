"""The three tasks: the sequences of rl, with a teacher that knows the right answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.opd.teachers import teacher_table
from hgrpo.sandbox.rl.settings import RlSettings
from hgrpo.sandbox.rl.tasks.sequences import SequenceTask
from hgrpo.sandbox.rl.tasks.task import Questions

# Of inputs that are too many to list, an evaluation reads so many, the same ones every time.
_DRAWN_INPUTS = 256


@dataclass(frozen=True)
class DistillTask:
    """The task and the teacher that the settings name."""

    settings: OpdSettings

    @cached_property
    def sequences(self) -> SequenceTask:
        """Inputs, right answers and rewards, as rl has them."""
        s = self.settings
        names = {"soft_reversal": "token_reversal", "reversal": "token_reversal"}
        return SequenceTask(
            RlSettings(
                task=names.get(s.task, s.task),
                vocab_size=s.vocab_size,
                seq_len=s.seq_len,
                d_model=s.d_model,
                nhead=s.nhead,
                num_layers=s.num_layers,
            )
        )

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
