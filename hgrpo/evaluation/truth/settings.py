"""Config section `truth` of a study: when and how ground-truth advantages are measured."""

from pydantic import Field

from hgrpo.config.bounds import RisingRounds
from hgrpo.config.strict import Strict


class TruthConfig(Strict):
    """Settings of `snakemake truth`, which estimates ground-truth advantages from continuations."""

    after_rounds: RisingRounds = Field(
        [0, 1],
        description="rounds after which ground-truth advantages are estimated, with the reference "
        "arm's policy for the study's first seed; 0: the SFT policy",
    )
    groups: int = Field(
        32,
        ge=2,
        description="number of training games to play, each with the reference arm's number of "
        "rollouts per group",
    )
    continuations: int = Field(
        16,
        ge=2,
        description="number of continuations played from the state before every turn; noise is "
        "estimated by comparing one half of them with the other half",
    )
    sketch: int = Field(
        2048,
        gt=0,
        description="dimension of the random projection of a turn's gradient; the error of an "
        "inner product is about 1 / sqrt(sketch) of the gradients' norms",
    )
