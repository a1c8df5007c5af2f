"""Settings of the critic."""

from pydantic import Field

from hgrpo.config.strict import Strict


class CriticConfig(Strict):
    """The critic: the SFT policy with a value head in the place of its language-model head."""

    lr: float = Field(1e-3, gt=0, description="learning rate of the critic's AdamW")
    minibatches: int = Field(2, gt=0, description="the critic's steps per batch and epoch")
    epochs: int = Field(1, gt=0, description="the critic's passes over each batch")
    clip: float = Field(
        0.5,
        gt=0,
        description="a value further than this from the value before the batch's first step is "
        "learnt no further in that direction; in units of the deviation of the first batch's "
        "returns",
    )
    max_grad_norm: float = Field(
        1.0, gt=0, description="gradients of a larger norm are scaled down to it"
    )
    warmup_steps: int = Field(
        0,
        ge=0,
        description="first steps of a run in which only the critic learns and the policy stays",
    )
