"""GroupPG: a policy gradient on whole trajectories, the first step towards TPO."""

from hgrpo.learning.rules.rule import GroupRule
from hgrpo.learning.rules.settings import GroupRuleSettings
from hgrpo.learning.settings import TrainingConfig

Settings = GroupRuleSettings


def make(settings: GroupRuleSettings, training: TrainingConfig) -> GroupRule:
    """The rule with its temperature."""
    from hgrpo.learning.objectives.tpo import group_pg

    return GroupRule(lambda scores, old, skills: group_pg(scores, skills, settings.eta, 0))
