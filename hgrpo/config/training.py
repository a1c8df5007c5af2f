"""Config of supervised fine-tuning, of the reinforcement-learning rounds and of credit."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from hgrpo.config.credit import CreditConfig
from hgrpo.config.strict import Strict

Beta = Annotated[float, Field(ge=0, lt=1)]


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


class MethodConfig(Strict):
    """One arm of a study. alpha = 1 is flatGRPO whatever the credit assigner says."""

    name: str
    label: str = ""
    train: bool = Field(True, description="false: the SFT policy is evaluated as it is (SFTOnly)")
    credit: CreditConfig = Field(default_factory=CreditConfig)
    alpha: float = Field(1.0, ge=0, le=1)
    group_norm: Literal["std", "mean"] = Field(
        "std", description="trajectory advantage: z-score in the group, or centred only"
    )
    turn_norm: Literal["position", "group", "none"] = "position"
    norm_floor: float = Field(1e-6, gt=0, description="lower bound of a deviation divided by")
    dead_groups: Literal["skip", "skip_equal_returns", "keep"] = Field(
        "skip",
        description="skip: groups whose advantages are all zero take no part in the update, unless "
        "a KL penalty has something to say of them; skip_equal_returns: those whose returns are "
        "all equal take none, whatever the turns' credit says (the guard of H-GRPO); keep: all do",
    )
    stream: int = Field(
        0,
        ge=0,
        description="0: the rollouts' random numbers are those of every other arm; another number "
        "draws others, for an A/A pair",
    )
    training: dict[str, object] = Field(
        default_factory=dict, description="TrainingConfig keys this arm changes"
    )

    @model_validator(mode="after")
    def _suits_its_credit(self) -> Self:
        if not self.train:
            return self
        wrong = [
            f"{key}: credit.kind {self.credit.kind!r} needs {value!r}, not {given!r}: {why}"
            for key, (value, why) in self.credit.demands.items()
            if (given := getattr(self, key)) != value
        ]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @property
    def shown_label(self) -> str:
        """What people read: the label, or the name, and what the assigner wants said beside it."""
        return self.credit.labelled(self.label or self.name)


class EvaluationConfig(Strict):
    """Evaluation of every round on the validation and test panels."""

    test_games: int = Field(500, gt=0)
    validation_games: int = Field(200, gt=0)
    temperatures: list[float] = Field([0.0], description="0 is greedy")
    sft_temperatures: list[float] = [0.0, 1.0, 0.7, 0.5, 0.3]
    max_action_tokens: int = Field(12, gt=0)
    in_flight: int = Field(256, gt=0)
    bootstrap: int = Field(10_000, gt=0)
    confidence: float = Field(0.95, gt=0.5, lt=1)

    @field_validator("temperatures", "sft_temperatures")
    @classmethod
    def _has_greedy(cls, values: list[float]) -> list[float]:
        if any(value < 0 for value in values) or len(set(values)) < len(values):
            raise ValueError("different temperatures, none below 0, were expected")
        if 0 not in values:
            raise ValueError("0 (greedy) is missing: arms are compared at it")
        return values
