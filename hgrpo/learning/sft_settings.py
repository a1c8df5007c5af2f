"""Settings of supervised fine-tuning."""

from pydantic import Field

from hgrpo.config.strict import Strict


class SftConfig(Strict):
    """Settings of supervised fine-tuning on expert trajectories."""

    adapter: str | None = Field(
        None,
        min_length=1,
        description="folder of an existing SFT policy to use instead of fine-tuning, i.e. the "
        "output of another study's sft stage, such as results/<study>/sft; may contain $VARIABLES. "
        "The other keys of this section are then ignored",
    )
    epochs: float = Field(
        1.0, gt=0, description="passes over the expert trajectories; may be fractional"
    )
    batch_trajectories: int = Field(32, gt=0, description="trajectories per optimiser step")
    matrix_lr: float = Field(
        0.012,
        gt=0,
        description="learning rate of Muon, for hidden matrices; only with `adapt: full`",
    )
    lr: float = Field(2e-3, gt=0, description="learning rate of AdamW, for all other weights")
    warmup_steps: int = Field(
        10, ge=0, description="warm-up steps of the learning rates, which then decay to 0"
    )
    weight_decay: float = Field(0.0, ge=0, description="weight decay of both optimisers")
    validation_share: float = Field(
        0.02, gt=0, lt=0.5, description="share of tasks held out for the validation loss"
    )
    microbatch_tokens: int = Field(
        2048, gt=0, description="tokens per forward and backward pass; limits memory"
    )
    seed: int = Field(
        0, description="seed of fine-tuning; all arms and training seeds share the policy"
    )
