"""Config section `truth` of a study: when and how true advantages are measured."""

from pydantic import Field

from hgrpo.config.bounds import RisingRounds
from hgrpo.config.strict import Strict


class TruthConfig(Strict):
    """Settings of `snakemake truth`, which measures true advantages by continuations."""

    after_rounds: RisingRounds = Field(
        [0, 1],
        description="rounds of the reference arm, in the study's first seed, after which the "
        "policy's truth is measured; 0: the SFT policy",
    )
    groups: int = Field(
        32,
        ge=2,
        description="training games that the policy plays, with as many rollouts as the reference "
        "arm's groups have",
    )
    continuations: int = Field(
        16,
        ge=2,
        description="episodes played on from before every turn; two halves of them show the noise",
    )
    sketch: int = Field(
        2048,
        gt=0,
        description="numbers that a turn's gradient is projected to, at random; an inner product "
        "of two gradients is then off by about 1 / sqrt(sketch) of their lengths",
    )
