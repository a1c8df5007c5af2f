"""The clipped surrogate of PPO, with the study's `clip_low` and `clip_high`: the default."""

from hgrpo.learning.rules.rule import TokenRule
from hgrpo.learning.rules.settings import RuleSettings
from hgrpo.learning.settings import TrainingConfig


class Settings(RuleSettings):
    """It has no keys of its own: `training.clip_low` and `training.clip_high` are the clip."""


def make(settings: Settings, training: TrainingConfig) -> TokenRule:
    """The rule with the study's clip."""
    from hgrpo.learning.objectives.clip import clip_fraction, ppo_clip

    clip = (training.clip_low, training.clip_high)
    return TokenRule(
        lambda logprobs, start, advantages: ppo_clip(logprobs, start, advantages, *clip),
        lambda logprobs, start, advantages: clip_fraction(logprobs, start, advantages, *clip),
    )
