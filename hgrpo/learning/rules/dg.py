"""DG: a gate on advantage times surprisal lets rare successes teach most."""

from pydantic import Field

from hgrpo.learning.rules.rule import TokenRule
from hgrpo.learning.rules.settings import RuleSettings
from hgrpo.learning.settings import TrainingConfig


class Settings(RuleSettings):
    """How soft the gate is."""

    eta: float = Field(
        1.0, gt=0, description="temperature of the gate sigmoid(advantage * surprisal / eta)"
    )


def make(settings: Settings, training: TrainingConfig) -> TokenRule:
    """The rule with its gate."""
    from hgrpo.learning.objectives.dg import dg_weights
    from hgrpo.learning.objectives.pg import policy_gradient

    return TokenRule(
        lambda logprobs, start, advantages: policy_gradient(
            logprobs, dg_weights(logprobs, advantages, settings.eta)
        )
    )
