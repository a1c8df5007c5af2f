"""PG: REINFORCE with importance weights, token by token, that are capped."""

from pydantic import Field

from hgrpo.learning.rules.rule import TokenRule
from hgrpo.learning.rules.settings import RuleSettings
from hgrpo.learning.settings import TrainingConfig


class Settings(RuleSettings):
    """The cap of the weights."""

    cap: float = Field(10.0, gt=0, description="largest importance weight of a token")


def make(settings: Settings, training: TrainingConfig) -> TokenRule:
    """The rule with its cap."""
    from hgrpo.learning.objectives.pg import pg_weights, policy_gradient

    return TokenRule(
        lambda logprobs, start, advantages: policy_gradient(
            logprobs, pg_weights(logprobs, start, advantages, settings.cap)
        )
    )
