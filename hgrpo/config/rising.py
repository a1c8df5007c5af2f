"""A list of rounds in a study's file: at least one, all different, in rising order."""

from typing import Annotated

from pydantic import AfterValidator, Field


def _rising(values: list[int]) -> list[int]:
    if sorted(set(values)) != values:
        raise ValueError("different rounds in rising order were expected")
    return values


RisingRounds = Annotated[
    list[Annotated[int, Field(ge=0)]], Field(min_length=1), AfterValidator(_rising)
]
