"""GroupPG: a policy gradient on whole trajectories, the first step towards TPO."""

from typing import ClassVar

from pydantic import Field

from hgrpo.learning.rules.rule import GroupRule
from hgrpo.learning.rules.settings import RuleSettings
from hgrpo.learning.settings import TrainingConfig


class Settings(RuleSettings):
    """How far the advantages reach."""

    of_groups: ClassVar[bool] = True

    eta: float = Field(1.0, gt=0, description="what a trajectory's advantage is divided by")


def make(settings: Settings, training: TrainingConfig) -> GroupRule:
    """The rule with its temperature."""
    from hgrpo.learning.objectives.tpo import group_pg

    return GroupRule(lambda scores, old, skills: group_pg(scores, skills, settings.eta, 0))
