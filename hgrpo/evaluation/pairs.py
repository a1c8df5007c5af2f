"""Comparisons of two trained arms that a study declares beside those with its reference."""

from typing import Self

from pydantic import Field, model_validator

from hgrpo.config.strict import Strict


class Pair(Strict):
    """An arm, and the arm that it is compared with."""

    arm: str = Field(description="name of a trained arm")
    against: str = Field(description="name of the trained arm that it is compared with")

    @model_validator(mode="after")
    def _are_two(self) -> Self:
        if self.arm == self.against:
            raise ValueError(f"against: {self.against} is the arm itself")
        return self
