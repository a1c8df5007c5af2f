"""Config section `gradients` of a study: when and how gradients of buckets are measured."""

from typing import Self

from pydantic import Field, model_validator

from hgrpo.config.bounds import RisingRounds
from hgrpo.config.strict import Strict, refuse_unread
from hgrpo.evaluation.gradients.buckets import BucketMode
from hgrpo.learning.settings import KlForm


class GradientsConfig(Strict):
    """Settings of `snakemake gradients`, which compares the gradients of buckets of groups.

    The defaults are those of RAGEN's scripts (https://github.com/mll-lab-nu/RAGEN).
    """

    after_rounds: RisingRounds = Field(
        [0],
        description="rounds after which the policy's gradients are measured; 0: the SFT policy",
    )
    groups: int = Field(
        128,
        ge=2,
        description="tasks of the panel `analysis` that the policy plays; one group of each",
    )
    rollouts: int = Field(16, ge=2, description="trajectories in a group")
    buckets: int = Field(6, ge=1, description="buckets of groups, in mode `quantile`")
    mode: BucketMode = Field(
        "quantile",
        description="`quantile`: buckets of equal size by the deviation of the groups' returns; "
        "`fixed`: deviations of 0 to 1, 1 to 2, 2 to 3, 3 to 4, 4 to 5, and 5 or more",
    )
    with_validation: bool = Field(
        False,
        description="whether the policies also play the validation panel, for the page; needs "
        "evaluation.validate_trained",
    )
    sketch: int | None = Field(
        None,
        ge=1024,
        description="numbers that a group's gradient is projected to, at random, where those of "
        "all groups do not fit into memory (16 bytes for each trained parameter and group); an "
        "inner product is then off by about 1 / sqrt(sketch) of the gradients' lengths",
    )
    kl_coefficient: float = Field(
        0.001, ge=0, description="weight of the KL in the weighted norms, whatever training uses"
    )
    kl_form: KlForm = Field("k3", description="estimate of the KL, as training.kl.form")
    entropy_coefficient: float = Field(
        0.001, ge=0, description="weight of the entropy in the weighted norms"
    )

    @model_validator(mode="after")
    def _enough(self) -> Self:
        refuse_unread(self, ("buckets", self.mode == "quantile", "mode: quantile"))
        if self.mode == "quantile" and 2 * self.buckets > self.groups:
            raise ValueError(
                f"buckets: {self.groups} groups are too few for {self.buckets} buckets; each needs "
                "two"
            )
        return self
