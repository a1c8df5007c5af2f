"""Settings of single rules."""

from typing import Literal

from pydantic import Field

from hgrpo.config.strict import Strict

# The same words as in hgrpo.learning.objectives.topk_support, which imports torch.
Support = Literal["student", "teacher", "intersection"]


class Truncation(Strict):
    """The losses over a part of the vocabulary."""

    k: int = Field(2, gt=0, description="tokens of a top-k set")
    support: Support = Field(
        "student", description="whose top-k set: student, teacher, or what both have in common"
    )


class Clip(Strict):
    """OPDPG."""

    # At 0, rounding would decide which tokens train.
    clip: float = Field(0.2, gt=0, description="the ratio is clipped to 1 plus and minus this")
