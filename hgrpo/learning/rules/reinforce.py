"""REINFORCE: the score-function gradient, which never looks at a ratio."""

from hgrpo.learning.rules.rule import TokenRule
from hgrpo.learning.rules.settings import RuleSettings
from hgrpo.learning.settings import TrainingConfig


class Settings(RuleSettings):
    """It has no keys."""


def make(settings: Settings, training: TrainingConfig) -> TokenRule:
    """The rule."""
    from hgrpo.learning.objectives.pg import policy_gradient

    return TokenRule(lambda logprobs, start, advantages: policy_gradient(logprobs, advantages))
