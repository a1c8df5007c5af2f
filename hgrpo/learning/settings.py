"""Settings of reinforcement learning: the rounds, the update and the KL penalty."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict

# The keys of `TrainingConfig` that are needed to play turns without training on them.
PLAY = {"temperature", "max_action_tokens", "in_flight"}
Beta = Annotated[float, Field(ge=0, lt=1)]


class KlConfig(Strict):
    """KL penalty to the SFT policy, with an adaptive coefficient; `init: 0` switches it off."""

    init: float = Field(0.0, ge=0)
    target: float = Field(0.04, gt=0)
    minimum: float = Field(1e-4, ge=0)
    maximum: float = Field(1.0, gt=0)
    adaptive: bool = True

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.adaptive and self.minimum > self.maximum:
            raise ValueError(f"minimum: {self.minimum:g} is above maximum, {self.maximum:g}")
        return self


class TrainingConfig(Strict):
    """Settings of an RL round; an arm may change some of them in its method file."""

    steps_per_round: int = Field(6, gt=0)
    tasks_per_step: int = Field(32, gt=0, description="P: groups collected before an update")
    rollouts_per_task: int = Field(8, gt=0, description="K: group size")
    temperature: float = Field(1.0, gt=0)
    max_action_tokens: int = Field(12, gt=0)
    lr: float = Field(3e-4, gt=0)
    betas: tuple[Beta, Beta] = (0.9, 0.95)
    weight_decay: float = Field(0.0, ge=0)
    warmup_steps: int = Field(3, ge=0)
    max_grad_norm: float = Field(1.0, gt=0)
    minibatches: int = Field(2, gt=0, description="optimiser steps per batch of groups and epoch")
    epochs: int = Field(1, gt=0)
    microbatch_tokens: int = Field(2048, gt=0)
    clip_low: float = Field(0.2, gt=0)
    clip_high: float = Field(0.2, gt=0)
    loss_reduction: Literal["token", "sequence"] = "token"
    importance_cap: float | None = Field(
        None,
        gt=0,
        description="truncated importance sampling, for an engine whose log-probs differ from the "
        "trainer's: each token is weighted by min(trainer / engine, cap), and the clipped ratio "
        "is taken to the trainer's log-probs; costs a forward pass. null: the ratio is taken to "
        "the engine's log-probs",
    )
    mismatch_limit: float | None = Field(
        0.2,
        gt=0,
        description="the round stops if the log-probs of engine and trainer differ by more than "
        "this, on average per sampled token; null: no limit",
    )
    kl: KlConfig = KlConfig()
    invalid_action_penalty: float = Field(
        0.0,
        ge=0,
        description="penalty * share of inadmissible actions is subtracted from the return",
    )
    carry_policy: bool = True
    in_flight: int = Field(256, gt=0, description="trajectories played at the same time")
