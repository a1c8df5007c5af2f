"""What the settings of a piece's run share: method, its own settings, seeds, length and cadence.

Importing this module imports no torch.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, PrivateAttr, field_validator, model_validator

from hgrpo.config.read import did_you_mean
from hgrpo.config.strict import Strict
from hgrpo.sandbox.rule import Need, Rule, refuse, spelled_out


class RunSettings(Strict):
    """One arm for some seeds; a piece adds its fields, its rules and what these may need."""

    RULES: ClassVar[Mapping[str, Rule]]
    NEEDS: ClassVar[Mapping[str, Need]]

    method: str = Field(description="name of the update rule")
    rule: dict[str, Any] = Field(
        default_factory=dict, validate_default=True, description="the rule's own settings"
    )
    seeds: tuple[int, ...] = Field((0, 1, 2), min_length=1, description="trained at once")
    num_steps: int = Field(gt=0, description="training steps")
    batch_size: int = Field(gt=0, description="rollouts of a batch")
    group_size: int = Field(8, gt=0, description="rollouts of a group")
    eval_every: int = Field(20, gt=0, description="steps between evaluations")
    allow_degenerate: bool = Field(
        False, description="run also arms that equal another arm, or whose switch cannot act"
    )
    _notes: list[str] = PrivateAttr(default_factory=list)

    @property
    def declared(self) -> Rule:
        """The rule."""
        return self.RULES[self.method]

    @property
    def rule_settings(self) -> Strict:
        """The rule's own settings."""
        return self.declared.settings.model_validate(self.rule)

    @property
    def groups(self) -> int:
        """How many groups a batch holds."""
        return self.batch_size // self.group_size

    @property
    def notes(self) -> list[str]:
        """One line for each way in which the run is degenerate, if that is allowed."""
        return self._notes

    @field_validator("method")
    @classmethod
    def _is_a_rule(cls, value: str) -> str:
        if value not in cls.RULES:
            raise ValueError(f"there is no such one{did_you_mean(value, cls.RULES)}")
        return value

    @field_validator("rule")
    @classmethod
    def _spells_out_the_rule(cls, value: Mapping[str, Any], info: Any) -> dict[str, Any]:
        """Check the rule's settings, and fill in their defaults."""
        method = info.data.get("method")
        return dict(value) if method is None else spelled_out(cls.RULES[method], value)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for wrong, line in self.refusals():
            if wrong:
                raise ValueError(line)
        self._notes = refuse(self.declared, self.NEEDS, self, self.allow_degenerate)
        return self

    def refusals(self) -> tuple[tuple[bool, str], ...]:
        """What is wrong with any rule, each with its line; a piece adds its own."""
        return (
            (
                self.batch_size % self.group_size != 0,
                f"batch_size {self.batch_size} is no multiple of group_size {self.group_size}",
            ),
            (len(set(self.seeds)) < len(self.seeds), "seeds: one stands twice"),
        )
