"""Settings of single rules."""

from typing import Literal

from pydantic import Field

from hgrpo.config.strict import Strict


class Capped(Strict):
    """PG, TrajPG, TEMPO and MaxRL."""

    cap: float = Field(10.0, gt=0, description="importance weights are cut at this")


class Aspo(Strict):
    """ASPO."""

    low: float = Field(0.2, ge=0, description="a ratio counts at least 1 minus this if A <= 0")
    high: float = Field(0.28, ge=0, description="an inverse ratio counts at most 1 plus this")


class R2vpo(Strict):
    """R2VPO."""

    penalty: float = Field(1.0, ge=0, description="weight of the ratio's variance")


class Gate(Strict):
    """The delightful gradient."""

    eta: float = Field(1.0, gt=0, description="temperature of the gate, in nats")


class Screen(Gate):
    """Kondo."""

    keep: float = Field(0.5, gt=0, le=1, description="expected share of samples that pass")


class Fresh(Gate):
    """FreshDG."""

    decay: float = Field(0.02, ge=0, description="a batch of age a weighs exp(-decay a)")


class Guard(Gate):
    """DGEntropyGuard."""

    strength: float = Field(0.5, ge=0, le=1, description="how much less a sure success weighs")


class Doubt(Gate):
    """UncertaintyDG and RewardVarianceDG."""

    scale: float = Field(1.0, ge=0, description="how much the deviation of rewards counts")


class Filter(Gate):
    """FilteredDG."""

    threshold: float = Field(
        0.5, ge=0, description="no gradient where rewards deviate by more than this"
    )


class Correction(Gate):
    """SelfDistillDG and SCOPELite."""

    alpha: float = Field(0.5, ge=0, description="weight of the cross-entropy to the labels")


class Clip(Strict):
    """DrGRPO and GRPOToken."""

    # At 0, rounding would decide which tokens train. The same holds for the clips below.
    clip: float = Field(0.2, gt=0, description="the ratio is clipped to 1 plus and minus this")
    beta: float = Field(0.04, ge=0, description="weight of the k3 penalty to the old policy")


class Grpo(Clip):
    """GRPO, whose parts can be changed one by one."""

    clip: float | None = Field(
        0.2, gt=0, description="the ratio is clipped to 1 plus and minus this; null: it is not"
    )
    norm: Literal["std", "mean", "none"] = Field(
        "std",
        description="std: z-scores; mean: centred rewards; none: rewards as they are",
    )
    reduction: Literal["token", "rollout"] = Field(
        "token", description="token: mean over tokens; rollout: tokens of a rollout add up"
    )


class ClipHigher(Strict):
    """DAPO."""

    low: float = Field(0.2, gt=0, description="the ratio is clipped below 1 minus this")
    high: float = Field(0.28, gt=0, description="the ratio is clipped above 1 plus this")


class Target(Strict):
    """TPO and its relatives."""

    eta: float = Field(1.0, gt=0, description="temperature of the target")


class MirrorDescent(Strict):
    """PMDMean."""

    tau: float = Field(1.0, gt=0, description="temperature of the regression")
