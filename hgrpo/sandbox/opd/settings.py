"""Settings of a run of opd: task, teacher, phases of training, and evaluation.

Settings have the same names as the flags of the original sandbox.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from pydantic import Field

from hgrpo.formulas import kinds
from hgrpo.formulas.rule import Need, Rule, refuse
from hgrpo.sandbox.run_settings import ArmSettings, RuleSettings, TransformerSettings, unread

RULES = kinds.of_piece("opd")


@dataclass(frozen=True)
class PhaseOfRun:
    """A run and the loss of one of its phases. The checks in `NEEDS` take this pair as input."""

    run: "OpdSettings"
    rule: Rule


NEEDS: dict[str, Need[PhaseOfRun]] = {
    "several_tokens": Need(
        "a top_k above 1, because a single renormalised token always has probability 1",
        lambda phase: phase.rule.k > 1,
    ),
    "truncates": Need(
        "a top_k below the number of actions; otherwise, it equals the exact divergence",
        lambda phase: phase.rule.k < phase.run.actions,
        degenerate=True,
    ),
    "ratios": Need(
        "ratios other than 1 for its clip to have an effect (inner_epochs above 1)",
        lambda phase: phase.run.inner_epochs > 1,
        degenerate=True,
    ),
}


class Phase(RuleSettings):
    """A phase of training, which uses one loss from a given step on."""

    RULES = RULES

    method: str = Field("OPDReverseKL", description="name of the loss")
    start: int = Field(0, ge=0, description="first step with this loss")
    label: str = Field("", description="name of the phase in the log; empty: name of the loss")

    @property
    def name(self) -> str:
        return self.label or self.method


class OpdSettings(ArmSettings, TransformerSettings):
    """Settings of one arm of opd, for a set of seeds."""

    task: Literal["reversal", "soft_reversal", "format_answer"] = Field(
        "reversal", description="the task"
    )
    phases: tuple[Phase, ...] = Field((Phase(),), description="losses of consecutive phases")
    num_steps: int = Field(500, gt=0, description="number of sampled batches")
    batch_size: int = Field(64, gt=0, description="rollouts per batch")
    lr: float = Field(1e-3, gt=0, description="learning rate of Adam")
    vocab_size: int = Field(2, ge=2, description="number of input tokens of the tasks")
    seq_len: int = Field(10, gt=0, description="length of inputs and outputs")
    teacher_epsilon: float = Field(
        1e-3, description="reversal, format_answer: total probability of wrong tokens"
    )
    teacher_temperature: float = Field(
        1.0, gt=0, description="soft_reversal: distance at which the weight of a token is 1/e"
    )
    special_token_weight: float = Field(
        0.02, gt=0, description="soft_reversal: weight of all other tokens"
    )
    overlap_k: int = Field(2, gt=0, description="size of the top-k sets in the logged overlap")

    @property
    def actions(self) -> int:
        """Size of the vocabulary: input tokens, separator and, for format_answer, the tag."""
        return self.vocab_size + (2 if self.task == "format_answer" else 1)

    @property
    def overlap(self) -> int:
        """`overlap_k`, at most the number of actions."""
        return min(self.overlap_k, self.actions)

    @property
    def rules(self) -> list[Rule]:
        return [phase.rule for phase in self.phases]

    def refusals(self) -> tuple[tuple[bool, str], ...]:
        """Checks that do not depend on the loss, as pairs (whether the check fails, message)."""
        return (
            *super().refusals(),
            (
                self.task != "soft_reversal" and not 0 < self.teacher_epsilon < 1,
                f"teacher_epsilon {self.teacher_epsilon} must be above 0 and below 1",
            ),
            (
                self.task == "format_answer" and self.seq_len < 2,
                "format_answer requires seq_len of at least 2",
            ),
            *unread(
                self,
                f"task {self.task}",
                teacher_epsilon=self.task != "soft_reversal",
                **dict.fromkeys(
                    ("teacher_temperature", "special_token_weight"), self.task == "soft_reversal"
                ),
            ),
            *self._wrong_phases(),
        )

    def unmet(self) -> list[str]:
        """Return one message per unmet requirement; raise ValueError if any is not allowed."""
        return [
            note
            for phase in self.phases
            for note in refuse(
                phase.rule, NEEDS, PhaseOfRun(self, phase.rule), self.allow_degenerate
            )
        ]

    def _wrong_phases(self) -> Sequence[tuple[bool, str]]:
        if not self.phases:
            return ((True, "phases: expected at least one phase"),)
        starts = [phase.start for phase in self.phases]
        rising = all(early < late for early, late in pairwise(starts))
        return (
            (starts[0] != 0, f"phases: the first phase must start at step 0, not {starts[0]}"),
            (not rising, f"phases: `start` must increase, not {starts}"),
            (
                starts[-1] >= self.num_steps,
                f"phases: start {starts[-1]} must be below num_steps {self.num_steps}",
            ),
        )
