"""Checks the types of values read from JSON; one-line messages say where a mistake is."""

from typing import Any

from hgrpo.errors import UserError

_KINDS = {str: "text", list: "a list", dict: "an object"}
_LONGEST = 60


def expect(kind: type, value: object, place: str) -> Any:
    """The value, if its type is `kind` (str, list or dict); UserError otherwise."""
    if not isinstance(value, kind):
        raise UserError(f"{place}: {_KINDS[kind]} was expected, not {shown(value)}")
    return value


def texts(value: object, place: str) -> tuple[str, ...]:
    """A list of texts as a tuple; UserError for any other value."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise UserError(f"{place}: a list of texts was expected, not {shown(value)}")
    return tuple(value)


def shown(value: object) -> str:
    """A value's `repr` for error messages, cut if it is long."""
    try:
        text = repr(value)
    except RecursionError:
        return "something nested very deeply"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
