"""Settings of supervised fine-tuning."""

from pydantic import Field

from hgrpo.config.strict import Strict


class SftConfig(Strict):
    """Supervised fine-tuning on expert trajectories."""

    adapter: str | None = Field(
        None,
        min_length=1,
        description="folder of an SFT policy to take in place of fine-tuning: what the stage sft "
        "wrote elsewhere, as results/<study>/sft; may hold $VARIABLES. Nothing else of this "
        "section is then read",
    )
    epochs: float = Field(
        1.0, gt=0, description="passes over the expert trajectories; may be a fraction"
    )
    batch_trajectories: int = Field(32, gt=0, description="trajectories of an optimiser step")
    matrix_lr: float = Field(
        0.012,
        gt=0,
        description="learning rate of Muon, for hidden matrices; only with `adapt: full`",
    )
    lr: float = Field(2e-3, gt=0, description="learning rate of AdamW, for all other weights")
    warmup_steps: int = Field(
        10, ge=0, description="steps over which the learning rates rise; then they fall to 0"
    )
    weight_decay: float = Field(0.0, ge=0, description="weight decay of both optimisers")
    validation_share: float = Field(
        0.02,
        gt=0,
        lt=0.5,
        description="share of the tasks whose trajectories are held out to measure the loss",
    )
    microbatch_tokens: int = Field(
        2048, gt=0, description="tokens of one forward and backward pass; bounds memory"
    )
    seed: int = Field(
        0, description="seed of fine-tuning; all arms and all training seeds share its policy"
    )
