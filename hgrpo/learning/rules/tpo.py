"""TPO: a group's trajectories are fitted to the old policy, tilted by their advantages."""

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
    from hgrpo.learning.objectives.tpo import target_cross_entropy, tpo_target

    return GroupRule(
        lambda scores, old, skills: target_cross_entropy(
            scores, tpo_target(old, skills, settings.eta, 0), 0
        )
    )
