"""An axis of a study: one key of a method, and the values that its arms give it."""

import contextlib
import math
import re
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from hgrpo.config.bounds import Name
from hgrpo.config.read import SectionError, merge
from hgrpo.config.strict import Strict

Value = bool | int | float | str
# A target is a rule of Snakemake, and an axis may be changed with dots: `axes.kl.values=0,0.1`.
AxisName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
SWEEP = "_sweep"
_WORD = re.compile(r"[A-Za-z0-9._-]+")


class Axis(Strict):
    """Arms that differ in the value of one key; `snakemake <axis>_sweep` runs only these.

    A value's arm is called `<axis>_<value>`, such as `kl_0.01`. If it is equal to one of `methods`,
    or to an arm of an earlier axis, that one is run in its place.
    """

    of: Name = Field(description="name of a file in configs/methods, which the arms change")
    key: str = Field(
        pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$",
        description="the key of the method that the values are for, with dots: `training.lr`",
    )
    values: list[Value] = Field(
        description="two or more different numbers or words; each makes an arm"
    )
    without: str | None = Field(
        None,
        description="a word that may stand among the values. In its arm the section that holds "
        "`key` is null; for the key `training.filter.value` that is the section `training.filter`",
    )
    fixed: dict[str, object] = Field(
        default_factory=dict,
        description="further changes to the method, the same in all arms of the axis: "
        "`{training: {entropy_bonus: 0}}`",
    )
    label: str = Field(
        "", description="words before the value in tables and figures; empty: the axis's name"
    )

    @field_validator("values", mode="before")
    @classmethod
    def _are_different(cls, values: object) -> object:
        if not isinstance(values, list | tuple):
            return values
        values = [_read(value) for value in values]
        texts = [as_text(value) for value in values]
        twice = sorted({text for text in texts if texts.count(text) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} is listed twice; each was expected once")
        if len(values) < 2:
            raise ValueError("an axis has two values or more")
        return values

    @model_validator(mode="after")
    def _changes_its_key_alone(self) -> Self:
        for key in ("name", "label", "of"):
            if key in self.fixed:
                raise ValueError(f"fixed: {key}: the axis itself gives its arms their {key}")
        if _holds(self.fixed, self.key.split(".")):
            raise ValueError(f"fixed: {self.key} is the axis's key, which `values` sets")
        if self.without is not None and not isinstance(_read(self.without), str):
            raise ValueError(f"without: {self.without}: a word was expected, such as `none`")
        if self.without is not None and self.key.count(".") < 2:
            raise ValueError(
                f"without: {self.without}: key {self.key} is in no section that could be null"
            )
        return self

    @property
    def section(self) -> str:
        """The section that holds the key, with dots."""
        return self.key.rpartition(".")[0]

    def is_without(self, value: Value) -> bool:
        """Whether the value makes the key's section null."""
        return self.without is not None and value == self.without

    def changes(self, value: Value) -> dict:
        """The changes of a value's arm to the method `of`."""
        key, change = (self.section, None) if self.is_without(value) else (self.key, value)
        for name in reversed(key.split(".")):
            change = {name: change}
        return merge(self.fixed, change)


def read_axis(section: object) -> object:
    """An axis from its section of a study's file, so that a mistake names the section's own keys.

    Raises:
        SectionError: there is a mistake in the section.
    """
    if not isinstance(section, Mapping):
        return section
    try:
        return Axis.model_validate(section)
    except ValidationError as error:
        raise SectionError(Axis, error) from None


def as_text(value: Value) -> str:
    """A value as it stands in the name of its arm: 1.0 and 1 are both "1"."""
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else value
    return repr(value + 0.0).removesuffix(".0").replace("+", "")


def arm_name(axis: str, value: Value) -> str:
    """The name of a value's arm."""
    return f"{axis}_{as_text(value)}"


def target(axis: str) -> str:
    """The target of Snakemake that runs an axis's arms."""
    return f"{axis}{SWEEP}"


def _read(value: object) -> Value:
    """A value of the list; the command line gives numbers as text."""
    if isinstance(value, str):
        value = _number_or_word(value)
    if not isinstance(value, Value):
        raise ValueError(f"{value!r} is neither a number nor a word")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    if isinstance(value, str) and not _WORD.fullmatch(value):
        raise ValueError(f"{value!r} has other characters than letters, digits, `.`, `_` and `-`")
    return value


def _number_or_word(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _holds(section: object, names: list[str]) -> bool:
    """Whether a nested mapping has the key that `names` lead to."""
    for name in names:
        if not isinstance(section, dict) or name not in section:
            return False
        section = section[name]
    return True
