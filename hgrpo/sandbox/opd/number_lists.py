"""Settings that hold several values; a command line gives them as one word, with commas."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from hgrpo.sandbox.opd.rule_settings import Support


def split(given: Any) -> Any:
    """The parts of a text between its commas, each once; anything else as it is.

    Raises:
        ValueError: the text has no parts, or the list is empty.
    """
    if isinstance(given, str):
        given = tuple(dict.fromkeys(part.strip() for part in given.split(",") if part.strip()))
    if given in ((), []):
        raise ValueError("at least one value was expected")
    return given


Counts = Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(split)]
Steps = Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(split)]
Supports = Annotated[tuple[Support, ...], BeforeValidator(split)]
