"""Define an axis of a study: arms of one method that differ in the value of one key."""

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
# Axis names occur in names of Snakemake rules and in dotted keys such as `axes.kl.values=0,0.1`.
AxisName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
SWEEP = "_sweep"
_WORD = re.compile(r"[A-Za-z0-9._-]+")


class Axis(Strict):
    """Arms that differ in the value of one key; `snakemake <axis>_sweep` runs only these arms.

    The arm for a value is named `<axis>_<value>`, such as `kl_0.01`. If `methods` or an earlier
    axis contains an identical arm, the axis uses this arm instead of a new one.
    """

    of: Name = Field(description="the base method of the arms: name of a file in configs/methods")
    key: str = Field(
        pattern=r"^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$",
        description="the method's key to vary, with dots: `training.lr`",
    )
    values: list[Value] = Field(description="at least two distinct numbers or words, one per arm")
    without: str | None = Field(
        None,
        description="an entry of `values`, such as `nofilter`. Its arm sets the section that "
        "contains `key` to null, for example `training.filter` if the key is "
        "`training.filter.value`",
    )
    fixed: dict[str, object] = Field(
        default_factory=dict,
        description="other changes to the method, identical in all arms of the axis, such as "
        "`{training: {entropy_bonus: 0}}`",
    )
    label: str = Field(
        "", description="text shown before the value in tables and figures; empty: the axis's name"
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
            raise ValueError(f"{', '.join(twice)}: duplicates; list each value once")
        if len(values) < 2:
            raise ValueError("an axis requires at least two values")
        return values

    @model_validator(mode="after")
    def _changes_its_key_alone(self) -> Self:
        for key in ("name", "label", "of"):
            if key in self.fixed:
                raise ValueError(f"fixed: `{key}` is not allowed; the axis sets it for its arms")
        if _holds(self.fixed, self.key.split(".")):
            raise ValueError(f"fixed: `{self.key}` is not allowed; the axis varies this key")
        if self.without is not None and not isinstance(_read(self.without), str):
            raise ValueError(f"without: {self.without}: expected a word, such as `none`")
        if self.without is not None and self.key.count(".") < 2:
            raise ValueError(
                f"without: {self.without}: `key: {self.key}` is not in a section that can be null; "
                "remove `without`"
            )
        return self

    @property
    def section(self) -> str:
        """The section of the key, with dots."""
        return self.key.rpartition(".")[0]

    def is_without(self, value: Value) -> bool:
        """Whether the arm for this value sets the key's section to null."""
        return self.without is not None and value == self.without

    def changes(self, value: Value) -> dict:
        """The changes to the method `of` that define the arm for a value."""
        key, change = (self.section, None) if self.is_without(value) else (self.key, value)
        for name in reversed(key.split(".")):
            change = {name: change}
        return merge(self.fixed, change)


def read_axis(section: object) -> object:
    """Validate the section of an axis; raise SectionError if it is invalid."""
    if not isinstance(section, Mapping):
        return section
    try:
        return Axis.model_validate(section)
    except ValidationError as error:
        raise SectionError(Axis, error) from None


def as_text(value: Value) -> str:
    """Format a value for the name of its arm; 1.0 and 1 both become "1"."""
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else value
    return repr(value + 0.0).removesuffix(".0").replace("+", "")


def arm_name(axis: str, value: Value) -> str:
    """The name of the arm for a value."""
    return f"{axis}_{as_text(value)}"


def target(axis: str) -> str:
    """The Snakemake target that runs the arms of an axis."""
    return f"{axis}{SWEEP}"


def _read(value: object) -> Value:
    """Validate a value. Text is parsed, because numbers on the command line arrive as text."""
    if isinstance(value, str):
        value = _number_or_word(value)
    if not isinstance(value, Value):
        raise ValueError(f"{value!r} is neither a number nor a word")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    if isinstance(value, str) and not _WORD.fullmatch(value):
        raise ValueError(f"{value!r}: only letters, digits, `.`, `_` and `-` are allowed")
    return value


def _number_or_word(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _holds(section: object, names: list[str]) -> bool:
    for name in names:
        if not isinstance(section, dict) or name not in section:
            return False
        section = section[name]
    return True
