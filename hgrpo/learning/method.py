"""Settings of a method: an arm of a study, with its credit assigner and update rule."""

from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Literal, Self

from pydantic import Field, create_model, model_validator

from hgrpo.config.kind_section import KindSection
from hgrpo.config.strict import Strict
from hgrpo.credit.kinds import CreditConfig
from hgrpo.formulas import kinds
from hgrpo.formulas.rule import Rule
from hgrpo.learning.advantages import DeadGroups, GroupNorm, TurnNorm, size_caution
from hgrpo.learning.settings import TrainingConfig


class ObjectiveConfig(KindSection):
    """Settings of the update rule: its name, `rule`, and the rule's own keys."""

    key: ClassVar[str] = "rule"

    rule: str = Field("PPOClip", description=f"{', '.join(kinds.known())}")

    @property
    def grouped(self) -> bool:
        """Whether the rule compares the rollouts of a group."""
        return kinds.load(self.rule).grouped

    @classmethod
    def settings_model(cls, kind: str) -> type[Strict]:
        return _without_shared(kinds.load(kind))

    def make(self, training: TrainingConfig) -> Rule:
        """Create the rule. Some of its settings are taken from `training`."""
        rule = kinds.load(self.rule)
        shared = {key: getattr(training, name) for key, name in rule.of_training.items()}
        return rule(**self.settings, **shared)


@cache
def _without_shared(rule: type[Rule]) -> type[Strict]:
    """The config class of the rule, without the settings that are taken from `training`."""
    if not rule.of_training:
        return rule
    fields = {
        name: (field.annotation, field)
        for name, field in rule.model_fields.items()
        if name not in rule.of_training
    }
    return create_model(rule.__name__, __base__=Strict, __doc__=rule.__doc__, **fields)


class MethodConfig(Strict):
    """One arm of a study. With alpha = 1, it trains like flatGRPO, regardless of turn credit."""

    name: str = Field(description="the method's name, equal to its file name without `.yaml`")
    label: str = Field(
        "", pattern=r"^[^\x00-\x1f]*$", description="name in tables and figures; empty: `name`"
    )
    train: bool = Field(True, description="false: no training; the SFT policy is evaluated")
    credit: CreditConfig = Field(
        default_factory=CreditConfig,
        description="the credit assigner: `kind` and the assigner's own keys",
    )
    advantage: Literal["group", "gae", "turn_gae", "bi_level_gae"] = Field(
        "group",
        description="group: advantages relative to the group, combined with turn credit. All "
        "other values use a critic. gae: GAE over tokens; turn_gae: GAE over turns; bi_level_gae: "
        "GAE over turns and then over tokens",
    )
    objective: ObjectiveConfig = Field(
        default_factory=ObjectiveConfig,
        description="the update rule, which turns advantages into a loss: `rule` and the rule's "
        "own keys",
    )
    alpha: float = Field(
        1.0,
        ge=0,
        le=1,
        description="weight of the trajectory's advantage in a turn's advantage; turn credit has "
        "weight 1 - alpha. Required with turn credit; must be 1 for credit.kind flat and critics",
    )
    group_norm: GroupNorm = Field(
        "std",
        description="the trajectory's advantage from the group's returns. std: z-score with the "
        "population standard deviation; sample_std: z-score with the sample standard deviation; "
        "mean: return minus the mean",
    )
    turn_norm: TurnNorm = Field(
        "position",
        description="normalisation of turn credit. position: z-score over the trajectories that "
        "reached the same turn number; group: z-score over all turns of the group; none: raw "
        "credit",
    )
    norm_floor: float = Field(1e-6, gt=0, description="lower bound of the divisor of z-scores")
    dead_groups: DeadGroups = Field(
        "skip",
        description="groups excluded from the update. skip: groups with all advantages zero, "
        "unless a KL penalty or an entropy bonus acts on them; skip_equal_returns: groups of "
        "equal returns, even if they have turn credit (as in H-GRPO); keep: none",
    )
    stream: int = Field(
        0,
        ge=0,
        description="0: rollouts use the same random numbers as all other arms with 0; other "
        "values give independent random numbers, as in an A/A comparison",
    )
    training: dict[str, object] = Field(
        default_factory=dict,
        description="overrides of the study's `training` for this arm, as in `{lr: 1e-4}`",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.uses_critic and (self.credit.kind != "flat" or self.alpha != 1.0):
            raise ValueError(
                f"advantage: {self.advantage} computes advantages from the critic, so "
                f"`credit.kind: {self.credit.kind}` and `alpha: {self.alpha:g}` would have no "
                "effect; remove both keys"
            )
        compares = self.advantage == "group" and self.alpha == 1.0
        if self.objective.grouped and not compares:
            raise ValueError(
                f"objective.rule: {self.objective.rule} compares whole trajectories, so it "
                f"requires `advantage: group` and `alpha: 1`, not {self.advantage} and "
                f"{self.alpha:g}"
            )
        if self._chooses_alpha and "alpha" not in self.model_fields_set:
            raise ValueError(
                f"alpha: required with credit.kind {self.credit.kind!r}, because an advantage is "
                "alpha x the trajectory's advantage + (1 - alpha) x turn credit; for equal "
                "weights, set `alpha: 0.5`"
            )
        demands = self.credit.declared.demands if self.train else {}
        wrong = [
            f"{key}: credit.kind {self.credit.kind!r} requires {value!r}, not {setting!r}: {why}"
            for key, (value, why) in demands.items()
            if (setting := getattr(self, key)) != value
        ]
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @property
    def _chooses_alpha(self) -> bool:
        """Whether the arm trains with turn credit and its assigner does not prescribe `alpha`."""
        compares = self.train and self.advantage == "group"
        return compares and "alpha" not in self.credit.declared.demands

    def credit_caution(self, flat: bool, sizes: Mapping[str, float | None] | None = None) -> str:
        """Warnings that turn credit or the return has little effect on updates; "" if none.

        Args:
            flat: whether the credit of all groups was constant within trajectories (`is_flat`).
            sizes: see `size_caution`.
        """
        if self._chooses_alpha and self.alpha == 1.0:
            return f"alpha is 1, so its credit (kind {self.credit.kind}) is not used in updates"
        if not (self.train and self.advantage == "group" and self.credit.declared.of_turns):
            return ""
        floor = 0.0 if self.turn_norm == "none" else self.norm_floor
        equal = f"0, too small, or constant after turn_norm: {self.turn_norm}" if flat else ""
        return size_caution(sizes or {}, self.alpha, floor, equal)

    @property
    def uses_critic(self) -> bool:
        return self.train and self.advantage != "group"

    @property
    def full_label(self) -> str:
        """`label` (or `name` without a label), and a remark such as "(offline rubric)"."""
        return f"{self.label or self.name} {self.credit.declared.label_remark}".strip()
