"""GRPO: z-scores of a group's rewards, and a symmetric clip."""

from hgrpo.learning.objectives.clip import ppo_clip
from hgrpo.learning.objectives.group import z_scores
from hgrpo.learning.objectives.importance import ratios
from hgrpo.sandbox.pedagogy.rule_settings import Clipped
from hgrpo.sandbox.rollout import Seen, Term


def grpo(seen: Seen, own: Clipped) -> Term:
    """The clipped surrogate of every token of a rollout."""
    rollout = seen.rollout
    advantages = seen.over_tokens(z_scores(rollout.rewards, -1))
    terms = ppo_clip(seen.logprobs, rollout.behaviour, advantages, own.clip, own.clip)
    return Term(
        seen.mean(terms),
        {
            "adv_abs_mean": seen.mean(advantages.abs()),
            "ratio_mean": seen.mean(ratios(seen.logprobs, rollout.behaviour)),
        },
    )
