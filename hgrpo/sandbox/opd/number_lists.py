"""Settings that hold several values; a command line gives them as one word, with commas."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field


def split(given: Any) -> Any:
    """The parts of a text between its commas, each once; anything else as it is.

    Raises:
        ValueError: the text has no parts.
    """
    if not isinstance(given, str):
        return given
    parts = tuple(dict.fromkeys(part.strip() for part in given.split(",") if part.strip()))
    if not parts:
        raise ValueError("values separated by commas were expected")
    return parts


Counts = Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(split)]
Steps = Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(split)]
Supports = Annotated[
    tuple[Literal["student", "teacher", "intersection"], ...], BeforeValidator(split)
]
