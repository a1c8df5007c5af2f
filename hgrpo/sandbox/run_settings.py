"""Settings common to all pieces of the sandbox, such as rule, seeds and number of steps."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_validator,
)

from hgrpo.config.bounds import distinct
from hgrpo.config.read import SectionError
from hgrpo.config.strict import Strict
from hgrpo.errors import did_you_mean
from hgrpo.formulas.rule import Need, Rule, refuse

Seeds = Annotated[tuple[int, ...], AfterValidator(distinct)]


class RuleSettings(Strict):
    """A rule, given by its name and its settings. Subclasses list the allowed rules in `RULES`."""

    RULES: ClassVar[Mapping[str, type[Rule]]]

    method: str = Field(description="name of the update rule")
    rule: SerializeAsAny[Rule] = Field(
        default_factory=dict, validate_default=True, description="the rule's settings"
    )

    @field_validator("method")
    @classmethod
    def _is_a_rule(cls, value: str) -> str:
        if value not in cls.RULES:
            raise ValueError(f"unknown rule{did_you_mean(value, cls.RULES)}")
        return value

    @field_validator("rule", mode="wrap")
    @classmethod
    def _is_of_the_method(cls, value: Any, validate: Any, info: Any) -> Rule | None:
        """Build the rule; return None if `method` is unknown, which is reported separately."""
        rule = cls.RULES.get(info.data.get("method"))
        try:
            return rule and rule.model_validate(dict(value))
        except ValidationError as error:
            raise SectionError(rule, error) from None


class ArmSettings(Strict):
    """Settings of one arm, for a set of seeds. Subclasses add rules and checks."""

    seeds: Seeds = Field((0, 1, 2), description="seeds, which are trained in parallel")
    num_steps: int = Field(gt=0, description="number of sampled batches")
    batch_size: int = Field(gt=0, description="rollouts per batch")
    inner_epochs: int = Field(1, gt=0, description="updates on each batch")
    eval_every: int = Field(20, gt=0, description="steps between evaluations")
    allow_degenerate: bool = Field(
        False, description="allow arms that equal another arm or have a setting without effect"
    )
    _notes: list[str] = PrivateAttr(default_factory=list)

    @property
    def rules(self) -> list[Rule]:
        """All rules of the run, in the order of their use."""
        raise NotImplementedError

    @property
    def notes(self) -> list[str]:
        """Messages about violations that `allow_degenerate` permits."""
        return self._notes

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for wrong, line in self.refusals():
            if wrong:
                raise ValueError(line)
        self._notes = self.unmet()
        return self

    def refusals(self) -> tuple[tuple[bool, str], ...]:
        """Checks that apply to any rule, as pairs (whether the check fails, message)."""
        return ()

    def unmet(self) -> list[str]:
        """Messages about unmet requirements that are allowed; raise ValueError for all others."""
        raise NotImplementedError


class RunSettings(ArmSettings, RuleSettings):
    """Settings of an arm with one rule and groups of rollouts. Subclasses define `NEEDS`."""

    NEEDS: ClassVar[Mapping[str, Need]]

    group_size: int = Field(8, gt=0, description="rollouts per group")

    @property
    def rules(self) -> list[Rule]:
        return [self.rule]

    @property
    def samples_groups(self) -> bool:
        """Whether a batch consists of groups with `group_size` rollouts of the same input."""
        return True

    @property
    def groups(self) -> int:
        return self.batch_size // self.group_size

    def refusals(self) -> tuple[tuple[bool, str], ...]:
        """Checks that apply to any rule, as pairs (whether the check fails, message)."""
        return (
            *super().refusals(),
            (
                self.samples_groups and self.batch_size % self.group_size != 0,
                f"batch_size {self.batch_size} is not a multiple of group_size {self.group_size}",
            ),
        )

    def unmet(self) -> list[str]:
        """Messages about unmet requirements that are allowed; raise ValueError for all others."""
        return refuse(self.rule, self.NEEDS, self, self.allow_degenerate)


class TransformerSettings(Strict):
    """Size of a `hgrpo.sandbox.nets.transformer.Transformer`."""

    d_model: int = Field(64, gt=0, description="width of the transformer")
    nhead: int = Field(2, gt=0, description="attention heads")
    num_layers: int = Field(2, gt=0, description="blocks of the transformer")

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.d_model % self.nhead:
            raise ValueError(f"d_model {self.d_model} is not a multiple of nhead {self.nhead}")
        return self


def unread(run: Strict, reader: str, **read: bool) -> list[tuple[bool, str]]:
    """Check for settings that differ from their defaults but have no effect.

    Args:
        reader: name of the task, rule or kind of run, for messages.
        read: maps each setting to whether `reader` uses it.

    Returns:
        Pairs (whether the check fails, message).
    """
    changed = {name for name in read if getattr(run, name) != type(run).model_fields[name].default}
    return [
        (name in changed and not is_read, f"{name}: {reader} does not use this setting; remove it")
        for name, is_read in read.items()
    ]
