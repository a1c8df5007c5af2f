"""Common settings of the pieces: rules, an arm's seeds and length, a transformer."""

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
    """A rule by name, with its own settings spelled out; a piece adds its rules."""

    RULES: ClassVar[Mapping[str, type[Rule]]]

    method: str = Field(description="name of the update rule")
    rule: SerializeAsAny[Rule] = Field(
        default_factory=dict, validate_default=True, description="the rule's settings"
    )

    @field_validator("method")
    @classmethod
    def _is_a_rule(cls, value: str) -> str:
        if value not in cls.RULES:
            raise ValueError(f"there is no such rule{did_you_mean(value, cls.RULES)}")
        return value

    @field_validator("rule", mode="wrap")
    @classmethod
    def _is_of_the_method(cls, value: Any, validate: Any, info: Any) -> Rule | None:
        """Build the rule; None for an unknown `method`, which has its own error."""
        rule = cls.RULES.get(info.data.get("method"))
        try:
            return rule and rule.model_validate(dict(value))
        except ValidationError as error:
            raise SectionError(rule, error) from None


class ArmSettings(Strict):
    """One arm for some seeds; a piece adds its rules and checks."""

    seeds: Seeds = Field((0, 1, 2), description="trained at once")
    num_steps: int = Field(gt=0, description="batches that a run samples")
    batch_size: int = Field(gt=0, description="rollouts of a batch")
    inner_epochs: int = Field(1, gt=0, description="updates on each batch")
    eval_every: int = Field(20, gt=0, description="steps between evaluations")
    allow_degenerate: bool = Field(
        False, description="also run arms that equal another arm or have a setting without effect"
    )
    _notes: list[str] = PrivateAttr(default_factory=list)

    @property
    def rules(self) -> list[Rule]:
        """The rules that train, in their order."""
        raise NotImplementedError

    @property
    def notes(self) -> list[str]:
        """One line for each way in which the run is degenerate, if that is allowed."""
        return self._notes

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for wrong, line in self.refusals():
            if wrong:
                raise ValueError(line)
        self._notes = self.unmet()
        return self

    def refusals(self) -> tuple[tuple[bool, str], ...]:
        """Checks of any rule: whether the run fails it, and a line; a piece adds its own."""
        return ()

    def unmet(self) -> list[str]:
        """A line for each degenerate need of a rule that is not met; others raise ValueError."""
        raise NotImplementedError


class RunSettings(ArmSettings, RuleSettings):
    """An arm that trains by one rule in groups of rollouts; a piece adds `NEEDS`."""

    NEEDS: ClassVar[Mapping[str, Need]]

    group_size: int = Field(8, gt=0, description="rollouts of a group")

    @property
    def rules(self) -> list[Rule]:
        """The one rule."""
        return [self.rule]

    @property
    def samples_groups(self) -> bool:
        """Whether the batch holds groups of `group_size` rollouts of one input."""
        return True

    @property
    def groups(self) -> int:
        """How many groups a batch holds."""
        return self.batch_size // self.group_size

    def refusals(self) -> tuple[tuple[bool, str], ...]:
        """Checks of any rule: whether the run fails it, and a line; a piece adds its own."""
        return (
            *super().refusals(),
            (
                self.samples_groups and self.batch_size % self.group_size != 0,
                f"batch_size {self.batch_size} is no multiple of group_size {self.group_size}",
            ),
        )

    def unmet(self) -> list[str]:
        """A line for each degenerate need of the rule that is not met; others raise ValueError."""
        return refuse(self.rule, self.NEEDS, self, self.allow_degenerate)


class TransformerSettings(Strict):
    """Size of a `hgrpo.sandbox.nets.transformer.Transformer`."""

    d_model: int = Field(64, gt=0, description="width of the transformer")
    nhead: int = Field(2, gt=0, description="attention heads")
    num_layers: int = Field(2, gt=0, description="blocks of the transformer")

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.d_model % self.nhead:
            raise ValueError(f"d_model {self.d_model} is no multiple of nhead {self.nhead}")
        return self


def unread(run: Strict, reader: str, **read: bool) -> list[tuple[bool, str]]:
    """For each setting, whether it was changed though the reader does not read it, and a line.

    Args:
        read: by setting, whether the reader reads it.
    """
    changed = {name for name in read if getattr(run, name) != type(run).model_fields[name].default}
    return [
        (name in changed and not is_read, f"{name}: {reader} does not read it")
        for name, is_read in read.items()
    ]
