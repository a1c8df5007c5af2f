"""What the settings of every update rule have in common."""

from typing import ClassVar

from pydantic import Field

from hgrpo.config.strict import Strict


class RuleSettings(Strict):
    """Settings of a rule; `of_groups` says whether it compares the rollouts of a group."""

    of_groups: ClassVar[bool] = False


class GroupRuleSettings(RuleSettings):
    """How far the advantages reach."""

    of_groups: ClassVar[bool] = True

    eta: float = Field(1.0, gt=0, description="what a trajectory's advantage is divided by")
