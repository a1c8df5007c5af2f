"""Base class of all config sections: unknown keys are errors, and instances are frozen."""

from collections.abc import Mapping
from typing import get_args

from pydantic import BaseModel, ConfigDict, model_validator


class Strict(BaseModel):
    """A config section that rejects unknown keys and non-finite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _has_no_truth_for_a_number(cls, section: object) -> object:
        """Reject booleans for numeric keys, because pydantic would read `true` as 1."""
        for name, value in section.items() if isinstance(section, Mapping) else ():
            field, inside = (
                cls.model_fields.get(name),
                value if isinstance(value, list) else [value],
            )
            kinds = _kinds(field.annotation) if field else [bool]
            is_number = bool not in kinds and (int in kinds or float in kinds)
            if is_number and any(isinstance(each, bool) for each in inside):
                raise ValueError(f"{name}: expected a number, not {value}")
        return section


def _kinds(annotation: object) -> list[object]:
    inside = get_args(annotation)
    return [kind for each in inside for kind in _kinds(each)] if inside else [annotation]


def refuse_unread(section: Strict, *knobs: tuple[str, bool, str], prefix: str = "") -> None:
    """Raise ValueError if an unused setting differs from its default.

    Default values are allowed, because a resolved config lists every key.

    Args:
        section: the section with the settings.
        knobs: name of each setting, whether it is used, and the condition for its use.
        prefix: prepended to the names in messages, such as the key of a nested section.
    """
    for name, read, reader in knobs:
        value = getattr(section, name)
        if not read and value != type(section).model_fields[name].default:
            raise ValueError(f"{prefix}{name}: {value} has an effect only with {reader}")
