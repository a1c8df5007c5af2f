"""The clipped surrogate, where a token with a negative advantage costs no more than a bound."""

from pydantic import Field

from hgrpo.learning.rules.rule import TokenRule
from hgrpo.learning.rules.settings import RuleSettings
from hgrpo.learning.settings import TrainingConfig


class Settings(RuleSettings):
    """The bound; the clip is that of the study."""

    bound: float = Field(
        3.0, gt=1, description="a negative advantage costs at most this many times its size"
    )


def make(settings: Settings, training: TrainingConfig) -> TokenRule:
    """The rule with its bound and the study's clip."""
    from hgrpo.learning.objectives.clip import clip_fraction, dual_clip

    clip, bound = (training.clip_low, training.clip_high), settings.bound
    return TokenRule(
        lambda logprobs, start, advantages: dual_clip(logprobs, start, advantages, *clip, bound),
        lambda logprobs, start, advantages: clip_fraction(logprobs, start, advantages, *clip),
    )
