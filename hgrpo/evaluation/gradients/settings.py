"""Config section `gradients` of a study: when and how gradients of buckets are measured."""

from typing import Self

from pydantic import Field, model_validator

from hgrpo.config.bounds import RisingRounds
from hgrpo.config.strict import Strict, refuse_unread
from hgrpo.evaluation.gradients.buckets import BucketMode
from hgrpo.learning.settings import KlForm


class GradientsConfig(Strict):
    """Settings of `snakemake gradients`, which compares gradients between buckets of groups.

    The defaults are those of RAGEN's scripts (https://github.com/mll-lab-nu/RAGEN).
    """

    after_rounds: RisingRounds = Field(
        [0], description="rounds after which the policy's gradients are measured; 0: the SFT policy"
    )
    groups: int = Field(
        128,
        ge=2,
        description="number of tasks to play from the panel `analysis`, with one group per task",
    )
    rollouts: int = Field(16, ge=2, description="trajectories per group")
    buckets: int = Field(6, ge=1, description="number of buckets with `mode: quantile`")
    mode: BucketMode = Field(
        "quantile",
        description="how groups are sorted into buckets by the standard deviation of their "
        "returns. `quantile`: buckets of equal size; `fixed`: bounds 0, 1, 2, 3, 4 and 5, without "
        "an upper bound for the last bucket",
    )
    with_validation: bool = Field(
        False,
        description="whether the page also shows the policies' success on the validation panel; "
        "requires evaluation.validate_trained",
    )
    sketch: int | None = Field(
        None,
        ge=1024,
        description="dimension of the random projection of a group's gradient, used if the "
        "gradients of all groups do not fit into memory (16 bytes per trained parameter and "
        "group); the error of an inner product is then about 1 / sqrt(sketch) of the gradients' "
        "norms",
    )
    kl_coefficient: float = Field(
        0.001,
        ge=0,
        description="weight of the KL in the weighted norms; independent of `training.kl`",
    )
    kl_form: KlForm = Field("k3", description="estimator of the KL, as in `training.kl.form`")
    entropy_coefficient: float = Field(
        0.001, ge=0, description="weight of the entropy in the weighted norms"
    )

    @model_validator(mode="after")
    def _enough(self) -> Self:
        refuse_unread(self, ("buckets", self.mode == "quantile", "mode: quantile"))
        if self.mode == "quantile" and 2 * self.buckets > self.groups:
            raise ValueError(
                f"buckets: {self.groups} groups are too few for {self.buckets} buckets of at "
                "least two groups"
            )
        return self
