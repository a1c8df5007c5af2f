"""ASPO: tokens with a positive advantage get the inverse of their importance weight."""

from hgrpo.learning.rules.rule import TokenRule
from hgrpo.learning.rules.settings import RuleSettings
from hgrpo.learning.settings import TrainingConfig


class Settings(RuleSettings):
    """It has no keys of its own: `training.clip_low` and `training.clip_high` bound the weights."""


def make(settings: Settings, training: TrainingConfig) -> TokenRule:
    """The rule with the study's clip."""
    from hgrpo.learning.objectives.aspo import aspo_weights
    from hgrpo.learning.objectives.pg import policy_gradient

    clip = (training.clip_low, training.clip_high)
    return TokenRule(
        lambda logprobs, start, advantages: policy_gradient(
            logprobs, aspo_weights(logprobs, start, advantages, *clip)
        )
    )
