"""Types of values that are shared by several config sections."""

from typing import Annotated

from pydantic import AfterValidator, Field

# A name becomes part of the folder names of results and an argument of shell commands.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
Name = Annotated[str, Field(pattern=NAME)]


def _ordered(bounds: tuple[int, int]) -> tuple[int, int]:
    low, high = bounds
    if not 0 <= low <= high:
        raise ValueError("bounds [low, high] must satisfy 0 <= low <= high")
    return bounds


def distinct(names: tuple | None) -> tuple | None:
    """Return `names`, which may be None. Raise ValueError if it is empty or has duplicates."""
    if names is not None and (not names or len(set(names)) != len(names)):
        raise ValueError("expected a non-empty list of distinct values")
    return names


def _rising(values: list[int]) -> list[int]:
    if sorted(set(values)) != values:
        raise ValueError("expected distinct rounds in increasing order")
    return values


Bounds = Annotated[tuple[int, int], AfterValidator(_ordered)]
Share = Annotated[float, Field(ge=0, le=1)]
RisingRounds = Annotated[
    list[Annotated[int, Field(ge=0)]], Field(min_length=1), AfterValidator(_rising)
]
