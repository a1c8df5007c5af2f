"""TPONoAnchor: a group's trajectories are fitted to the softmax of their advantages."""

from hgrpo.learning.rules.rule import GroupRule
from hgrpo.learning.rules.settings import GroupRuleSettings
from hgrpo.learning.settings import TrainingConfig

Settings = GroupRuleSettings


def make(settings: GroupRuleSettings, training: TrainingConfig) -> GroupRule:
    """The rule with its temperature."""
    from hgrpo.learning.objectives.tpo import target_cross_entropy, unanchored_target

    return GroupRule(
        lambda scores, old, skills: target_cross_entropy(
            scores, unanchored_target(skills, settings.eta, 0), 0
        )
    )
