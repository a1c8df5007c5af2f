"""Settings of a run of opd: task, teacher, phases of training and measurement.

The names are those of the original's flags. Importing this module imports no torch.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from hgrpo.config.read import did_you_mean
from hgrpo.config.strict import Strict
from hgrpo.sandbox.opd.declared import RULES
from hgrpo.sandbox.opd.needs import NEEDS, PhaseOfRun
from hgrpo.sandbox.rule import Rule, refuse, spelled_out

TASKS = ("reversal", "soft_reversal", "format_answer")


class Phase(Strict):
    """One loss, from a step on."""

    method: str = Field("OPDReverseKL", description="name of the loss")
    rule: dict[str, Any] = Field(
        default_factory=dict, validate_default=True, description="the loss's own settings"
    )
    start: int = Field(0, ge=0, description="first step that trains with it")
    label: str = Field("", description="what the log calls the phase; empty: the loss's name")

    @property
    def declared(self) -> Rule:
        """The loss."""
        return RULES[self.method]

    @property
    def rule_settings(self) -> Strict:
        """The loss's own settings."""
        return self.declared.settings.model_validate(self.rule)

    @property
    def name(self) -> str:
        """What the log calls the phase."""
        return self.label or self.method

    @field_validator("method")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in RULES:
            raise ValueError(f"there is no such one{did_you_mean(value, RULES)}")
        return value

    @field_validator("rule")
    @classmethod
    def _spells_out_the_rule(cls, value: Mapping[str, Any], info: Any) -> dict[str, Any]:
        """Check the loss's settings, and fill in their defaults."""
        method = info.data.get("method")
        return dict(value) if method is None else spelled_out(RULES[method], value)


class OpdSettings(Strict):
    """One arm of opd for some seeds."""

    task: str = Field("reversal", description=f"one of {', '.join(TASKS)}")
    phases: tuple[Phase, ...] = Field((Phase(),), description="losses that train one after another")
    num_steps: int = Field(500, gt=0, description="batches that a run samples")
    batch_size: int = Field(64, gt=0, description="rollouts of a batch")
    lr: float = Field(1e-3, gt=0, description="learning rate of Adam")
    inner_epochs: int = Field(1, gt=0, description="updates on each batch")
    eval_every: int = Field(20, gt=0, description="steps between evaluations")
    seeds: tuple[int, ...] = Field((0, 1, 2), min_length=1, description="trained at once")
    vocab_size: int = Field(2, ge=2, description="input tokens of the tasks")
    seq_len: int = Field(10, gt=0, description="tokens of an input, and of an output")
    d_model: int = Field(64, gt=0, description="width of the transformer")
    nhead: int = Field(2, gt=0, description="attention heads")
    num_layers: int = Field(2, gt=0, description="blocks of the transformer")
    teacher_epsilon: float = Field(
        1e-3, description="reversal, format_answer: probability of all wrong tokens together"
    )
    teacher_temperature: float = Field(
        1.0, gt=0, description="soft_reversal: distance at which a token's weight falls to 1/e"
    )
    special_token_weight: float = Field(
        0.02, gt=0, description="soft_reversal: weight of a token that is no input token"
    )
    overlap_k: int = Field(
        2, gt=0, description="tokens of the top-k sets whose overlap the log gives"
    )
    allow_degenerate: bool = Field(
        False, description="run also arms that equal another arm, or whose switch cannot act"
    )
    _notes: list[str] = PrivateAttr(default_factory=list)

    @property
    def actions(self) -> int:
        """Size of the output vocabulary: input tokens, separator and, in format_answer, the tag."""
        return self.vocab_size + (2 if self.task == "format_answer" else 1)

    @property
    def overlap(self) -> int:
        """`overlap_k`, or the number of actions if that is less."""
        return min(self.overlap_k, self.actions)

    @property
    def notes(self) -> list[str]:
        """One line for each way in which the run is degenerate, if that is allowed."""
        return self._notes

    @field_validator("task")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in TASKS:
            raise ValueError(f"there is no such one{did_you_mean(value, TASKS)}")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        refuse_first(
            (
                self.task != "soft_reversal" and not 0 < self.teacher_epsilon < 1,
                f"teacher_epsilon {self.teacher_epsilon} must be above 0 and below 1",
            ),
            (
                self.task == "format_answer" and self.seq_len < 2,
                "format_answer needs seq_len of at least 2",
            ),
            heads_fit(self.d_model, self.nhead),
            (len(set(self.seeds)) < len(self.seeds), "seeds: one stands twice"),
            *self._wrong_phases(),
        )
        self._notes = [
            note
            for phase in self.phases
            for note in refuse(
                phase.declared, NEEDS, PhaseOfRun(self, phase.rule), self.allow_degenerate
            )
        ]
        return self

    def _wrong_phases(self) -> Sequence[tuple[bool, str]]:
        if not self.phases:
            return ((True, "phases: at least one was expected"),)
        starts = [phase.start for phase in self.phases]
        rising = all(early < late for early, late in pairwise(starts))
        return (
            (starts[0] != 0, f"phases: the first starts at step {starts[0]}; 0 was expected"),
            (not rising, f"phases: starts {starts} do not rise"),
            (
                starts[-1] >= self.num_steps,
                f"phases: one starts at step {starts[-1]}, and num_steps is {self.num_steps}",
            ),
        )


def heads_fit(width: int, heads: int) -> tuple[bool, str]:
    """Whether a transformer's width cannot be shared among its heads, and the line that says so."""
    return width % heads != 0, f"d_model {width} is no multiple of nhead {heads}"


def refuse_first(*cases: tuple[bool, str]) -> None:
    """Raise ValueError with the line of the first case that is wrong."""
    for wrong, line in cases:
        if wrong:
            raise ValueError(line)
