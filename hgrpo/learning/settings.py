"""Settings of reinforcement learning: the rounds, the update, its KL penalty and its critic."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from hgrpo.config.bounds import Share
from hgrpo.config.strict import Strict
from hgrpo.formulas.kl import KlForm
from hgrpo.formulas.reduction import Reduction
from hgrpo.learning.filters.settings import FilterConfig
from hgrpo.learning.stops import StopConfig

# The keys of `TrainingConfig` that are needed to play turns without training on them.
PLAY = {"temperature", "max_action_tokens", "in_flight"}
Beta = Annotated[float, Field(ge=0, lt=1)]


class KlConfig(Strict):
    """KL penalty to the SFT policy, with an adaptive coefficient; `init: 0` switches it off."""

    init: float = Field(0.0, ge=0, description="first value of the coefficient; 0: no penalty")
    form: KlForm = Field(
        "k3",
        description="k3: its gradient is, in expectation, that of KL(reference || policy); k2: "
        "that of KL(policy || reference); k3_k2_gradient: the value of k3 with the gradient of k2; "
        "k3_ratio: k3 times the ratio to the policy that played, right also after optimiser steps",
    )
    watch: bool = Field(
        True,
        description="whether the KL is measured also without a penalty, on every 8th trajectory; "
        "false saves the reference's forward pass",
    )
    target: float = Field(
        0.04, gt=0, description="KL per token, in nats, that the coefficient is adapted to"
    )
    minimum: float = Field(1e-4, ge=0, description="least value of an adapted coefficient")
    maximum: float = Field(1.0, gt=0, description="largest value of an adapted coefficient")
    adaptive: bool = Field(
        True,
        description="whether the coefficient follows the observed KL; otherwise it stays at `init`",
    )

    def adapted(self, coefficient: float, observed: float) -> float:
        """The coefficient after a step whose mean KL per token was `observed`, in nats.

        The rule of Ziegler et al. 2019, "Fine-Tuning Language Models from Human Preferences",
        https://arxiv.org/abs/1909.08593, in the stepwise form of H-GRPO, the reference system: a
        KL above 1.5 x target multiplies the coefficient by 1.5, a KL below 0.5 x target divides it
        by 1.5, within [minimum, maximum]. A coefficient of 0 stays 0: the penalty is off.
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
                "reference, so it cannot act as a penalty; use k2, k3, k3_k2_gradient or k3_ratio"
            )
        return form

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.adaptive and self.minimum > self.maximum:
            raise ValueError(f"minimum: {self.minimum:g} is above maximum, {self.maximum:g}")
        return self


class GaeConfig(Strict):
    """Discounts of the estimate; they do nothing for `advantage: group`."""

    gamma: Share = Field(
        1.0, description="discount from token to token, and for turn_gae from turn to turn"
    )
    lam: Share = Field(
        1.0,
        description="lambda: 1 trusts the rewards that were earned, 0 the critic's next value",
    )
    gamma_high: Share = Field(0.95, description="discount from turn to turn of bi_level_gae")
    truncation: Literal["end", "bootstrap"] = Field(
        "end",
        description="what follows where the turn cap or the context length ended an episode: end: "
        "nothing, the cap is a rule of the game; bootstrap: the critic's value of the state after "
        "the last turn, so the cap only cuts the play short",
    )


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


class CollapseConfig(Strict):
    """How much replies depend on their prompts.

    It is measured at the run's first step and at the last step of each round.
    """

    pairs: int = Field(
        64,
        gt=1,
        description="trajectories, drawn from those of the step, of which a prompt and its reply "
        "are taken; a step with fewer gives all of its own. Every reply is scored under every "
        "prompt, so the cost grows with the square",
    )


class DynamicSampling(Strict):
    """Tasks are played until `tasks_per_step` groups are alive; only these are trained on."""

    most_batches: int = Field(
        4, gt=1, description="a step plays at most this many times `tasks_per_step` tasks"
    )


class TrainingConfig(Strict):
    """Settings of an RL round; an arm may change some of them in its method file."""

    steps_per_round: int = Field(6, gt=0, description="batches that a round plays and learns from")
    tasks_per_step: int = Field(32, gt=0, description="P: groups collected before an update")
    rollouts_per_task: int = Field(8, gt=0, description="K: group size")
    dynamic_sampling: DynamicSampling | None = Field(
        None,
        description="play further tasks for dead groups, whose advantages are all zero, and leave "
        "the dead groups out of the update; the extra play counts. null: a step plays "
        "`tasks_per_step` tasks",
    )
    temperature: float = Field(1.0, gt=0, description="sampling temperature of training rollouts")
    max_action_tokens: int = Field(
        12, gt=0, description="most tokens of a reply, its closing token included"
    )
    lr: float = Field(3e-4, gt=0, description="learning rate of AdamW")
    betas: tuple[Beta, Beta] = Field((0.9, 0.95), description="decay rates of AdamW's two moments")
    weight_decay: float = Field(0.0, ge=0, description="weight decay of AdamW")
    warmup_steps: int = Field(
        3, ge=0, description="steps of a run over which the learning rate rises to `lr`"
    )
    max_grad_norm: float = Field(
        1.0, gt=0, description="gradients of a larger norm are scaled down to it"
    )
    minibatches: int = Field(2, gt=0, description="optimiser steps per batch of groups and epoch")
    minibatch_trajectories: int | None = Field(
        None,
        gt=0,
        description="trajectories of an optimiser step; a batch that a filter has made smaller "
        "then gets fewer steps, as in RAGEN. null: `minibatches` steps, however small the batch is",
    )
    epochs: int = Field(1, gt=0, description="passes over each batch")
    microbatch_tokens: int = Field(
        2048, gt=0, description="tokens of one forward and backward pass; bounds memory"
    )
    clip_low: float = Field(
        0.2, gt=0, description="the probability ratio is clipped below 1 minus this"
    )
    clip_high: float = Field(
        0.2, gt=0, description="the probability ratio is clipped above 1 plus this"
    )
    loss_reduction: Reduction = Field(
        "token",
        description="token: mean over all tokens of a minibatch; sequence: mean over trajectories "
        "of their token means; constant: mean over trajectories of their token sums / "
        "`loss_constant`, as in Dr. GRPO",
    )
    loss_constant: int | None = Field(
        None, gt=0, description="what the reduction `constant` divides a trajectory's sum by"
    )
    entropy_bonus: float = Field(
        0.0,
        ge=0,
        description="coefficient of the mean entropy per token, in nats, which is subtracted from "
        "the loss",
    )
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
    kl: KlConfig = Field(
        KlConfig(), description="KL penalty that keeps the policy near the SFT policy"
    )
    gae: GaeConfig = Field(
        GaeConfig(), description="the estimate of arms whose `advantage` is not `group`"
    )
    critic: CriticConfig = Field(
        CriticConfig(), description="the critic of arms whose `advantage` is not `group`"
    )
    advantage_rms: float | None = Field(
        None,
        gt=0,
        description="the advantages of each batch are scaled so that the root of their mean square "
        "over turns is this; without it, arms whose credit has another scale train with another "
        "learning rate. null: they stay as they are",
    )
    filter: FilterConfig | None = Field(
        None,
        description="the update learns only from the groups, or the trajectories, that the filter "
        "keeps; null: from all",
    )
    stops: StopConfig = Field(
        StopConfig(), description="when a run stops before its last round; by default never"
    )
    collapse: CollapseConfig | None = Field(
        None,
        description="whether the first step of a run and the last of each round measure how much "
        "replies depend on their prompts; this changes nothing that is trained. null: they do not",
    )
    invalid_action_penalty: float = Field(
        0.0,
        ge=0,
        description="penalty * share of inadmissible actions is subtracted from the return",
    )
    carry_policy: bool = Field(
        True,
        description="a round starts from the previous round's policy; false: every round starts "
        "from the SFT policy",
    )
    in_flight: int = Field(256, gt=0, description="trajectories played at the same time")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.loss_reduction == "constant") != (self.loss_constant is not None):
            raise ValueError(
                f"loss_constant: {self.loss_constant} with loss_reduction: {self.loss_reduction}; "
                "set `loss_constant` with the reduction `constant`, and only with it"
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
            compares.append("stops.reward_collapse: the trajectories of a group are compared")
        if compares and self.rollouts_per_task == 1:
            raise ValueError(f"{compares[0]}, and rollouts_per_task is 1")
        return self

    @property
    def most_tasks_per_step(self) -> int:
        """The most tasks that a step may play, with the further ones of `dynamic_sampling`."""
        sampling = self.dynamic_sampling
        return self.tasks_per_step * (1 if sampling is None else sampling.most_batches)

    def penalises_dead_groups(self, coefficient: float) -> bool:
        """Whether a KL penalty with this coefficient, or the entropy bonus, acts on dead groups.

        Dynamic sampling plays other groups in their place, and the update leaves them out.
        """
        regularised = coefficient > 0 or self.entropy_bonus > 0
        return regularised and self.dynamic_sampling is None
