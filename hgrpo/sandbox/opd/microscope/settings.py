"""Settings of the variance microscope, under the original's names."""

from typing import Annotated

from pydantic import Field

from hgrpo.formulas.rule import Rule
from hgrpo.sandbox.opd.settings import OpdSettings
from hgrpo.sandbox.run_settings import Seeds, TransformerSettings


class MicroscopeSettings(TransformerSettings):
    """One measurement for some seeds."""

    horizons: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (4, 8, 16, 32), min_length=1, description="lengths of an output"
    )
    num_batches: int = Field(40, ge=2, description="batches whose gradients are compared")
    batch_size: int = Field(
        16, ge=2, description="rollouts of a batch; some estimators centre on the others of them"
    )
    seeds: Seeds = Field((0, 1, 2), description="measured one by one")
    vocab_size: int = Field(2, ge=2, description="input tokens")
    d_model: int = Field(32, gt=0, description="width of the transformer")
    num_layers: int = Field(1, gt=0, description="blocks of the transformer")
    teacher_epsilon: float = Field(
        1e-3, gt=0, lt=1, description="probability of all wrong tokens together"
    )
    reference_batches: int = Field(
        16,
        ge=2,
        description="batches, 8 times as large; if outputs are too many to list, their mean "
        "replaces the exact gradient",
    )

    @property
    def rules(self) -> list[Rule]:
        """None: it trains nothing."""
        return []

    def at(self, horizon: int) -> OpdSettings:
        """The task of one horizon."""
        return OpdSettings(
            vocab_size=self.vocab_size,
            seq_len=horizon,
            d_model=self.d_model,
            nhead=self.nhead,
            num_layers=self.num_layers,
            teacher_epsilon=self.teacher_epsilon,
            seeds=self.seeds,
        )
