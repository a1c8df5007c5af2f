"""Settings of supervised fine-tuning."""

from pydantic import Field

from hgrpo.config.strict import Strict


class SftConfig(Strict):
    """Supervised fine-tuning on expert trajectories."""

    epochs: float = Field(1.0, gt=0)
    batch_trajectories: int = Field(32, gt=0)
    matrix_lr: float = Field(0.012, gt=0, description="Muon, hidden matrices (full tuning only)")
    lr: float = Field(2e-3, gt=0, description="AdamW, everything else")
    warmup_steps: int = Field(10, ge=0)
    weight_decay: float = Field(0.0, ge=0)
    validation_share: float = Field(0.02, gt=0, lt=0.5)
    microbatch_tokens: int = Field(2048, gt=0)
    seed: int = 0
