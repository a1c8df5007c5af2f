"""Settings of TurnRD's model, fit and credit read-out."""

from typing import Literal, Self

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict, refuse_unread
from hgrpo.credit.counterfactual import Settings as CounterfactualSettings
from hgrpo.credit.settings import StoredCredit, SumsTo
from hgrpo.credit.to_go import ToGoSettings


class FitSettings(Strict):
    """Settings of the fit after each round, which uses the trajectories of all rounds so far."""

    epochs: int = Field(3, gt=0, description="maximum passes over the replay buffer")
    batch: int = Field(64, gt=1, description="trajectories per optimiser step")
    lr: float = Field(5e-4, gt=0, description="learning rate of AdamW")
    schedule: Literal["constant", "warmup_cosine"] = Field(
        "constant",
        description="learning-rate schedule: constant, or warm-up followed by cosine decay to 0",
    )
    warmup_steps: int = Field(0, ge=0, description="optimiser steps of the warm-up")
    weight_decay: float = Field(0.01, ge=0, description="weight decay of AdamW")
    max_grad_norm: float = Field(
        1.0, gt=0, description="maximum gradient norm; larger gradients are scaled down"
    )
    validation_share: float = Field(0.1, gt=0, lt=0.5, description="share of held-out tasks")
    patience: int = Field(
        1,
        gt=0,
        description="stop after this many epochs without improvement of the validation loss",
    )
    warm_start: bool = Field(False, description="start from the previous round's model")
    half_life: float | None = Field(
        4.0,
        gt=0,
        description="rounds after which a trajectory's sampling weight is halved; null: no decay",
    )
    fresh_rounds: int = Field(0, ge=0, description="newest rounds used in `fresh_epochs`")
    fresh_epochs: int = Field(0, ge=0, description="final epochs on the newest rounds only")
    value_weight: float = Field(0.0, ge=0, description="weight of the mean squared error of V_t")
    value_target: Literal["progress", "return_share", "discounted_return"] = Field(
        "progress",
        description="target of V_t. progress: the turn's progress; return_share: return / number "
        "of turns; discounted_return: discount^(remaining turns) * return",
    )
    discount: float = Field(0.95, gt=0, le=1, description="discount of `discounted_return`")
    rank_weight: float = Field(
        0.0, ge=0, description="weight of a hinge loss that ranks trajectories by return"
    )
    rank_margin: float = Field(0.1, gt=0, description="margin of the hinge loss")
    prior_weight: float = Field(0.0, ge=0, description="weight of KL(alpha || softmax(t / T))")
    entropy_weight: float = Field(0.0, ge=0, description="weight of the mean entropy of alpha")
    contrastive_weight: float = Field(
        0.0, ge=0, description="weight of InfoNCE, whose positives are turns of successes"
    )
    contrastive_temperature: float = Field(0.1, gt=0, description="temperature of InfoNCE")
    supervision_weight: float = Field(
        0.0, ge=0, description="weight of KL(counterfactual target || alpha over the drawn turns)"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.fresh_rounds) != bool(self.fresh_epochs):
            raise ValueError("set both `fresh_rounds` and `fresh_epochs`, or neither")
        discounts = self.value_weight > 0 and self.value_target == "discounted_return"
        refuse_unread(
            self,
            ("warmup_steps", self.schedule != "constant", "schedule: warmup_cosine"),
            ("value_target", self.value_weight > 0, "value_weight above 0"),
            ("discount", discounts, "value_weight above 0 and value_target: discounted_return"),
            ("rank_margin", self.rank_weight > 0, "rank_weight above 0"),
            ("contrastive_temperature", self.contrastive_weight > 0, "contrastive_weight above 0"),
        )
        return self


class ModelSettings(Strict):
    """Settings of the network."""

    version: Literal["v1", "v2"] = Field(
        "v2",
        description="v1: attention of a learned query over turns; v2: a score and value per turn",
    )
    layers: int = Field(2, gt=0, description="encoder layers")
    hidden: int = Field(128, gt=0, description="width of the encoder, a multiple of `heads`")
    heads: int = Field(4, gt=0, description="attention heads")
    dropout: float = Field(0.1, ge=0, lt=1, description="dropout rate while the model is fitted")
    max_turns: int = Field(
        64, gt=0, description="number of learned position embeddings; later turns use the last one"
    )
    value_head: bool = Field(True, description="whether to add a value head; required in v2")
    progress_prior: float = Field(
        1.0,
        ge=0,
        description="v2: prior added to scores, linear from 0 at the first turn to this value at "
        "the last",
    )
    film: bool = Field(False, description="v2: condition on the goal's embedding by FiLM")

    @model_validator(mode="after")
    def _fits_the_version(self) -> Self:
        if self.hidden % self.heads:
            raise ValueError(f"hidden: {self.hidden} must be a multiple of `heads` ({self.heads})")
        if self.version == "v2" and not self.value_head:
            raise ValueError("value_head: required with `version: v2`; set `value_head: true`")
        if self.version == "v1" and self.film:
            raise ValueError("film: not supported with `version: v1`; set `version: v2`")
        refuse_unread(self, ("progress_prior", self.version == "v2", "version: v2"))
        return self


class Settings(ToGoSettings):
    """Keys beside `kind: turnrd`."""

    reads_embeddings = True
    needs_policy = True
    fits = True
    first_round_remark = (
        "No model has been fitted in the first round, so turns get equal shares of the return."
    )
    figures = ("turnrd",)

    readout: Literal["alpha_return", "projected_value", "value_baseline"] = Field(
        "alpha_return",
        description="credit of turn t with weight alpha_t, value V_t and return R. alpha_return: "
        "alpha_t R; projected_value: V_t, clipped and then shifted so that the values sum to R; "
        "value_baseline: alpha_t R - V_t",
    )
    value_clip: float = Field(2.0, gt=0, description="projected_value: bound of |V_t|")
    model: ModelSettings = Field(ModelSettings(), description="settings of the network")
    fit: FitSettings = Field(FitSettings(), description="settings of the fit after each round")
    counterfactual: CounterfactualSettings | None = Field(
        None,
        description="play continuations, and fit alpha to the counterfactual credit; null: off",
    )

    @property
    def plays(self) -> bool:
        return self.counterfactual is not None

    @property
    def continues_fit(self) -> bool:
        return self.fit.warm_start

    @property
    def sums_to(self) -> SumsTo:
        """The quantity to which a trajectory's credit sums; "" if this quantity is unknown."""
        return "" if self.readout == "value_baseline" or self.to_go is not None else "return"

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """Use the fitted model, or equal shares without a model. Do not play continuations."""
        settings, note = self, ""
        if self.counterfactual is not None:
            fit = self.fit.model_copy(update={"supervision_weight": 0.0})
            settings = self.model_copy(update={"fit": fit, "counterfactual": None})
            note = "computes credit only; no continuations are played for the next fit"
        if not fitted:
            note = "no model is fitted yet, so turns get equal shares of the return"
            sums_to: SumsTo = "return" if self.to_go is None else ""
            return StoredCredit(settings, sums_to, note, stand_in=True)
        return StoredCredit(settings, self.sums_to, note)

    @model_validator(mode="after")
    def _values_are_there_and_fitted(self) -> Self:
        if not self.model.value_head and (self.readout != "alpha_return" or self.fit.value_weight):
            raise ValueError(
                "value_head: set it to true, because `readout` or `fit.value_weight` uses it"
            )
        trained = self.model.version == "v2" or self.fit.value_weight > 0
        if self.readout != "alpha_return" and not trained:
            raise ValueError(
                f"readout: {self.readout} requires a trained value head; set `fit.value_weight` "
                "above 0, or use `version: v2`, which always trains this head"
            )
        clips = self.readout == "projected_value"
        refuse_unread(self, ("value_clip", clips, "readout: projected_value"))
        if bool(self.fit.supervision_weight) != (self.counterfactual is not None):
            raise ValueError("set both `fit.supervision_weight` and `counterfactual`, or neither")
        if self.counterfactual is not None and self.counterfactual.turns_per_trajectory == 1:
            raise ValueError(
                "counterfactual.turns_per_trajectory: 1 has no effect, because the fit compares "
                "the drawn turns within a trajectory; set it to 2 or more"
            )
        return self
