"""The base class of every config section: unknown keys are errors, values are frozen."""

from collections.abc import Mapping
from typing import get_args

from pydantic import BaseModel, ConfigDict, model_validator


class Strict(BaseModel):
    """A config section that rejects unknown keys and numbers that are not finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _has_no_truth_for_a_number(cls, section: object) -> object:
        """Refuse `yes` and `true` for a number, which pydantic would read as 1."""
        for name, value in section.items() if isinstance(section, Mapping) else ():
            field, inside = (
                cls.model_fields.get(name),
                value if isinstance(value, list) else [value],
            )
            kinds = _kinds(field.annotation) if field else [bool]
            is_number = bool not in kinds and (int in kinds or float in kinds)
            if is_number and any(isinstance(each, bool) for each in inside):
                raise ValueError(f"{name}: a number was expected, not {value}")
        return section


def _kinds(annotation: object) -> list[object]:
    """The types in an annotation, also those inside lists and unions."""
    inside = get_args(annotation)
    return [kind for each in inside for kind in _kinds(each)] if inside else [annotation]


def refuse_unread(section: Strict, *knobs: tuple[str, bool, str], prefix: str = "") -> None:
    """Refuse settings that differ from their defaults although nothing reads them.

    A setting at its default passes, because a resolved config spells out every key.

    Args:
        section: the section with the settings.
        knobs: name, whether it is read, and its reader, for each setting.
        prefix: text before each name in the message, such as the key of an inner section.

    Raises:
        ValueError: there is such a setting. The message gives name, value and reader.
    """
    for name, read, reader in knobs:
        value = getattr(section, name)
        if not read and value != type(section).model_fields[name].default:
            raise ValueError(f"{prefix}{name}: {value} is read only with {reader}")
