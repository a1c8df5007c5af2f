"""Settings of single rules."""

from typing import Literal, Self

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict, refuse_unread


class Clipped(Strict):
    """StudentGRPO."""

    # At 0, rounding would decide which tokens train.
    clip: float = Field(0.2, gt=0, description="the ratio is clipped to 1 plus and minus this")


class Taught(Clipped):
    """TeacherRL: success less a penalty for the teacher, plain imitation for the student."""

    strength: float = Field(0.5, ge=0, description="weight of the penalty")
    imitated: Literal["all", "correct"] = Field(
        "all", description="rollouts of the teacher that the student imitates"
    )


class Lesson(Taught):
    """PedagogicalRL: how the teacher is rewarded, and how the student imitates it."""

    reward: Literal["product", "additive"] = Field(
        "product",
        description="product: success times exp(-strength penalty); additive: success minus "
        "strength times penalty",
    )
    penalty: Literal["spike", "mean", "surprisal"] = Field(
        "spike",
        description="of the student's gaps to its likeliest token: spike: a soft maximum; mean: "
        "their mean. surprisal: the mean of its -log p",
    )
    imitation: Literal["gated", "plain"] = Field(
        "gated", description="gated: tokens that surprise the student count less"
    )
    beta: float = Field(5.0, gt=0, description="spike: sharpness of the soft maximum, per nat")
    kappa: float = Field(4.0, gt=0, description="gated: steepness of the gate, per nat")
    gamma: float = Field(-2.5, description="gated: log-prob at which the gate is a half")

    @model_validator(mode="after")
    def _reads_what_is_set(self) -> Self:
        gated = self.imitation == "gated"
        refuse_unread(
            self,
            ("beta", self.penalty == "spike", "penalty spike"),
            ("kappa", gated, "imitation gated"),
            ("gamma", gated, "imitation gated"),
        )
        return self
