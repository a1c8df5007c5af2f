"""Settings of single rules."""

from typing import Literal

from pydantic import Field

from hgrpo.config.strict import Strict


class Clipped(Strict):
    """ScalarGRPO."""

    # At 0, rounding would decide which slots train.
    clip: float = Field(0.2, gt=0, description="the ratio is clipped to 1 plus and minus this")


class Slots(Clipped):
    """MultiRLVR."""

    credit: Literal["shared", "marginal"] = Field(
        "shared",
        description="what a slot is credited. shared: the set's score; marginal: what the score "
        "loses without the slot",
    )


class Sets(Slots):
    """VPOGRPO."""

    score: Literal["drawn", "exact"] = Field(
        "drawn",
        description="the mean over weights of the best answer. drawn: over weights that the "
        "rollouts of a group share; exact: its integral",
    )
    draws: int = Field(16, gt=0, description="drawn: how many weights")
