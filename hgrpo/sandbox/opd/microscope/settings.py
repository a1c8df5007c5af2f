"""Settings of the variance microscope, named like the flags of the original sandbox."""

from typing import Annotated

from pydantic import Field

from hgrpo.formulas.rule import Rule
from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.run_settings import Seeds, TransformerSettings


class MicroscopeSettings(TransformerSettings):
    """Settings of one measurement, for a set of seeds."""

    horizons: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (4, 8, 16, 32), min_length=1, description="output lengths"
    )
    num_batches: int = Field(40, ge=2, description="number of batches")
    batch_size: int = Field(
        16, ge=2, description="rollouts per batch; some estimators use a leave-one-out baseline"
    )
    seeds: Seeds = Field((0, 1, 2), description="seeds, which are measured separately")
    vocab_size: int = Field(2, ge=2, description="input tokens")
    d_model: int = Field(32, gt=0, description="width of the transformer")
    num_layers: int = Field(1, gt=0, description="blocks of the transformer")
    teacher_epsilon: float = Field(
        1e-3, gt=0, lt=1, description="total probability of wrong tokens"
    )
    reference_batches: int = Field(
        16,
        ge=2,
        description="number of batches of 8 times the size, whose mean gradient replaces the exact "
        "one if there are too many outputs",
    )

    @property
    def rules(self) -> list[Rule]:
        """Empty, because nothing is trained."""
        return []

    def at(self, horizon: int) -> OpdSettings:
        """Settings of the task with sequences of length `horizon`."""
        return OpdSettings(
            vocab_size=self.vocab_size,
            seq_len=horizon,
            d_model=self.d_model,
            nhead=self.nhead,
            num_layers=self.num_layers,
            teacher_epsilon=self.teacher_epsilon,
            seeds=self.seeds,
        )
