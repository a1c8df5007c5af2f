"""Settings of reinforcement learning: rounds, update, KL penalty and critic."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from hgrpo.config.bounds import Share
from hgrpo.config.strict import Strict
from hgrpo.formulas.kl import KlForm
from hgrpo.formulas.reduction import Reduction
from hgrpo.learning.filters.settings import FilterConfig
from hgrpo.learning.stops import StopConfig

# Keys of `TrainingConfig` that are required to play without training.
PLAY = {"temperature", "max_action_tokens", "in_flight"}
Beta = Annotated[float, Field(ge=0, lt=1)]


class KlConfig(Strict):
    """KL penalty relative to the SFT policy. `init: 0` switches it off."""

    init: float = Field(0.0, ge=0, description="initial coefficient; 0: no penalty")
    form: KlForm = Field(
        "k3",
        description="estimator of the KL. k3: expected gradient of KL(reference || policy); k2: "
        "expected gradient of KL(policy || reference); k3_k2_gradient: value of k3 with the "
        "gradient of k2; k3_ratio: k3 times the importance ratio, which stays unbiased after "
        "optimiser steps",
    )
    watch: bool = Field(
        True,
        description="whether to measure the KL on every 8th trajectory if there is no penalty; "
        "false saves the reference's forward pass",
    )
    target: float = Field(
        0.04, gt=0, description="KL per token, in nats, that the adaptive coefficient aims for"
    )
    minimum: float = Field(1e-4, ge=0, description="minimum of the adaptive coefficient")
    maximum: float = Field(1.0, gt=0, description="maximum of the adaptive coefficient")
    adaptive: bool = Field(
        True,
        description="whether to adapt the coefficient to the observed KL; false: constant `init`",
    )

    def adapted(self, coefficient: float, observed: float) -> float:
        """The coefficient after a step whose mean KL per token is `observed`, in nats.

        If the KL exceeds 1.5 x target, the coefficient is multiplied by 1.5. If the KL is below
        0.5 x target, it is divided by 1.5. It remains within [minimum, maximum], and 0 (no penalty)
        remains 0. This is H-GRPO's variant of the rule of Ziegler et al. 2019, "Fine-Tuning
        Language Models from Human Preferences", https://arxiv.org/abs/1909.08593.
        """
        if not self.adaptive or coefficient == 0.0:
            return coefficient
        if observed > 1.5 * self.target:
            factor = 1.5
        elif observed < 0.5 * self.target:
            factor = 1.0 / 1.5
        else:
            return coefficient
        return min(max(coefficient * factor, self.minimum), self.maximum)

    @field_validator("form", mode="before")
    @classmethod
    def _teaches(cls, form: object) -> object:
        if form in ("k1", "kl"):
            raise ValueError(
                f"{form}: the expected gradient of log p - log p_ref does not depend on the "
                "reference, so this form is not a penalty; use k2, k3, k3_k2_gradient or k3_ratio"
            )
        return form

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.adaptive and self.minimum > self.maximum:
            raise ValueError(f"minimum: {self.minimum:g} must not exceed maximum: {self.maximum:g}")
        return self


class GaeConfig(Strict):
    """Settings of generalised advantage estimation (GAE); unused with `advantage: group`."""

    gamma: Share = Field(
        1.0, description="discount factor per token; per turn with `advantage: turn_gae`"
    )
    lam: Share = Field(
        1.0,
        description="GAE lambda. 1: only observed rewards are used; 0: only the next reward and "
        "the critic's value after it",
    )
    gamma_high: Share = Field(
        0.95, description="discount factor per turn with `advantage: bi_level_gae`"
    )
    truncation: Literal["end", "bootstrap"] = Field(
        "end",
        description="value after the last turn of an episode that was truncated by the turn cap or "
        "the context length. end: 0, as for a terminal state; bootstrap: the critic's value of the "
        "final state",
    )


class CriticConfig(Strict):
    """Settings of the critic, which is the SFT policy with a value head instead of its LM head."""

    lr: float = Field(1e-3, gt=0, description="learning rate of the critic's AdamW")
    minibatches: int = Field(
        2, gt=0, description="optimiser steps of the critic per batch and epoch"
    )
    epochs: int = Field(1, gt=0, description="passes of the critic over each batch")
    clip: float = Field(
        0.5,
        gt=0,
        description="value clip: maximum change of a predicted value from its prediction before "
        "the batch's first step, in units of the standard deviation of the first batch's returns",
    )
    max_grad_norm: float = Field(
        1.0, gt=0, description="maximum gradient norm; larger gradients are scaled down"
    )
    warmup_steps: int = Field(
        0, ge=0, description="initial steps of a run that train only the critic"
    )


class CollapseConfig(Strict):
    """Metrics that measure how much replies depend on their prompts.

    They are computed in the run's first step and in the last step of each round.
    """

    pairs: int = Field(
        64,
        gt=1,
        description="maximum number of (prompt, reply) pairs, one per trajectory. Every reply is "
        "scored under every prompt, so the cost is quadratic in this number",
    )


class DynamicSampling(Strict):
    """Play tasks until `tasks_per_step` groups have nonzero advantages; train on these groups."""

    most_batches: int = Field(
        4, gt=1, description="maximum number of tasks per step, as a multiple of `tasks_per_step`"
    )


class TrainingConfig(Strict):
    """Settings of an RL round; an arm may override some of them in its method file."""

    steps_per_round: int = Field(
        6, gt=0, description="steps per round; each step plays one batch and trains on it"
    )
    tasks_per_step: int = Field(
        32, gt=0, description="P: tasks per step; each task is played by one group"
    )
    rollouts_per_task: int = Field(8, gt=0, description="K: rollouts per group")
    dynamic_sampling: DynamicSampling | None = Field(
        None,
        description="replace dead groups, whose advantages are all zero, by groups of additional "
        "tasks. The update excludes dead groups, but the counts in the log include their "
        "rollouts. null: a step plays `tasks_per_step` tasks",
    )
    temperature: float = Field(1.0, gt=0, description="sampling temperature of training rollouts")
    max_action_tokens: int = Field(
        12, gt=0, description="maximum tokens of a reply, including its end token"
    )
    lr: float = Field(3e-4, gt=0, description="learning rate of AdamW")
    betas: tuple[Beta, Beta] = Field((0.9, 0.95), description="decay rates of AdamW's two moments")
    weight_decay: float = Field(0.0, ge=0, description="weight decay of AdamW")
    warmup_steps: int = Field(
        3, ge=0, description="warm-up steps of the learning rate, counted over the run"
    )
    max_grad_norm: float = Field(
        1.0, gt=0, description="maximum gradient norm; larger gradients are scaled down"
    )
    minibatches: int = Field(2, gt=0, description="optimiser steps per epoch over a batch")
    minibatch_trajectories: int | None = Field(
        None,
        gt=0,
        description="trajectories per optimiser step, as in RAGEN: a filtered batch then has "
        "fewer steps. null: every batch has `minibatches` steps",
    )
    epochs: int = Field(1, gt=0, description="passes over each batch")
    microbatch_tokens: int = Field(
        2048, gt=0, description="tokens per forward and backward pass; limits memory"
    )
    clip_low: float = Field(
        0.2, gt=0, description="lower clip range: ratios are clipped at 1 - clip_low"
    )
    clip_high: float = Field(
        0.2, gt=0, description="upper clip range: ratios are clipped at 1 + clip_high"
    )
    loss_reduction: Reduction = Field(
        "token",
        description="token: mean over all tokens of a minibatch; sequence: mean over trajectories "
        "of their token means; constant: mean over trajectories of their token sums / "
        "`loss_constant`, as in Dr. GRPO",
    )
    loss_constant: int | None = Field(
        None,
        gt=0,
        description="divisor of a trajectory's token sum with `loss_reduction: constant`",
    )
    entropy_bonus: float = Field(
        0.0,
        ge=0,
        description="coefficient of the entropy bonus: this value times the mean entropy per "
        "token, in nats, is subtracted from the loss",
    )
    importance_cap: float | None = Field(
        None,
        gt=0,
        description="cap of truncated importance sampling, which corrects for a mismatch between "
        "engine and trainer. The loss of a token has the weight min(p_trainer / p_engine, cap), "
        "and the clipped ratio uses the trainer's old log-probs, which requires a forward pass. "
        "null: the ratio uses the engine's log-probs, without correction",
    )
    mismatch_limit: float | None = Field(
        0.2,
        gt=0,
        description="maximum mean absolute difference per sampled token between the log-probs of "
        "engine and trainer; if it is exceeded, the round fails; null: no limit",
    )
    kl: KlConfig = Field(
        KlConfig(), description="KL penalty that keeps the policy near the SFT policy"
    )
    gae: GaeConfig = Field(
        GaeConfig(),
        description="generalised advantage estimation, for arms whose `advantage` is not `group`",
    )
    critic: CriticConfig = Field(
        CriticConfig(), description="the critic, for arms whose `advantage` is not `group`"
    )
    advantage_rms: float | None = Field(
        None,
        gt=0,
        description="scale the advantages of each batch to this root mean square over turns, "
        "because otherwise the scale of an arm's credit changes its effective learning rate. null: "
        "no scaling",
    )
    filter: FilterConfig | None = Field(
        None, description="selection of the groups or trajectories to train on; null: all"
    )
    stops: StopConfig = Field(
        StopConfig(), description="rules for early stopping of a run; all off by default"
    )
    collapse: CollapseConfig | None = Field(
        None,
        description="measure how much replies depend on their prompts, without affecting "
        "training; null: off",
    )
    invalid_action_penalty: float = Field(
        0.0,
        ge=0,
        description="penalty coefficient: this value times a trajectory's share of inadmissible "
        "actions is subtracted from its return",
    )
    carry_policy: bool = Field(
        True,
        description="whether a round starts from the previous round's policy; false: from the SFT "
        "policy",
    )
    in_flight: int = Field(256, gt=0, description="maximum trajectories played concurrently")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.loss_reduction == "constant") != (self.loss_constant is not None):
            raise ValueError(
                f"loss_constant: {self.loss_constant} with `loss_reduction: {self.loss_reduction}`"
                "; set `loss_constant` if and only if `loss_reduction` is `constant`"
            )
        chosen = self.filter
        if chosen and chosen.strategy == "top_k_abs" and chosen.value > self.tasks_per_step:
            raise ValueError(
                f"filter.value: top_k_abs cannot keep {chosen.value:g} groups when "
                f"tasks_per_step is {self.tasks_per_step}"
            )
        compares = []
        if self.filter and (setting := self.filter.compares):
            compares.append(f"filter.{setting} compares the trajectories of a group")
        if self.stops.reward_collapse:
            compares.append("stops.reward_collapse compares the trajectories of a group")
        if compares and self.rollouts_per_task == 1:
            raise ValueError(f"{compares[0]}, so `rollouts_per_task` must be at least 2")
        return self

    @property
    def most_tasks_per_step(self) -> int:
        """Maximum number of tasks of a step, including those of `dynamic_sampling`."""
        sampling = self.dynamic_sampling
        return self.tasks_per_step * (1 if sampling is None else sampling.most_batches)

    def penalises_dead_groups(self, coefficient: float) -> bool:
        """Whether the entropy bonus, or a KL penalty with `coefficient`, is applied to dead groups.

        The result is False with dynamic sampling, which replaces dead groups.
        """
        regularised = coefficient > 0 or self.entropy_bonus > 0
        return regularised and self.dynamic_sampling is None
