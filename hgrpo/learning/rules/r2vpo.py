"""R2VPO: the ratio is not clipped; its variance is penalised instead."""

from pydantic import Field

from hgrpo.learning.rules.rule import TokenRule
from hgrpo.learning.rules.settings import RuleSettings
from hgrpo.learning.settings import TrainingConfig


class Settings(RuleSettings):
    """The strength of the penalty."""

    penalty: float = Field(1.0, ge=0, description="coefficient of (ratio - 1) squared")


def make(settings: Settings, training: TrainingConfig) -> TokenRule:
    """The rule with its penalty."""
    from hgrpo.learning.objectives.pg import policy_gradient
    from hgrpo.learning.objectives.r2vpo import r2vpo_weights

    return TokenRule(
        lambda logprobs, start, advantages: policy_gradient(
            logprobs, r2vpo_weights(logprobs, start, advantages, settings.penalty)
        )
    )
