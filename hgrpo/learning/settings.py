"""Settings of reinforcement learning: the rounds, the update and the KL penalty."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict

# Keys of `TrainingConfig` that say how turns are played.
PLAY = {"temperature", "max_action_tokens", "in_flight"}
Beta = Annotated[float, Field(ge=0, lt=1)]


class KlConfig(Strict):
    """k3 penalty to the SFT policy, with the adaptive controller; init 0 switches it off."""

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
    """One reinforcement-learning round; identical for every arm unless its method file says so."""

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
    minibatches: int = Field(2, gt=0, description="optimiser steps a batch of groups is split into")
    epochs: int = Field(1, gt=0)
    microbatch_tokens: int = Field(2048, gt=0)
    clip_low: float = Field(0.2, gt=0)
    clip_high: float = Field(0.2, gt=0)
    loss_reduction: Literal["token", "sequence"] = "token"
    importance_cap: float | None = Field(
        None,
        gt=0,
        description="truncated importance sampling, for an engine whose log-probs differ from the "
        "trainer's: tokens count min(trainer / engine, cap) times, and the clip's ratio starts at "
        "the trainer; costs a forward pass. null: the engine's log-probs are taken for the "
        "trainer's",
    )
    mismatch_limit: float | None = Field(
        0.2,
        gt=0,
        description="mean distance, per sampled token, of the engine's log-probs from the "
        "trainer's, above which the round stops; null: it never does",
    )
    kl: KlConfig = KlConfig()
    invalid_action_penalty: float = Field(
        0.0,
        ge=0,
        description="taken off the return as penalty * share of inadmissible actions",
    )
    carry_policy: bool = True
    in_flight: int = Field(256, gt=0, description="trajectories advanced together")
