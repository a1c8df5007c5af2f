"""The clipped surrogate of single slots."""

from hgrpo.learning.objectives.clip import ppo_clip
from hgrpo.learning.objectives.importance import ratios
from hgrpo.learning.objectives.set_score import slot_advantages
from hgrpo.sandbox.rollout import Seen, Term
from hgrpo.sandbox.vpo.rule_settings import Clipped


def clipped(seen: Seen, own: Clipped) -> Term:
    """GRPO's surrogate, where a slot's credit is compared with that of its group."""
    rollout = seen.rollout
    advantages = slot_advantages(rollout.extras["credit"]).unsqueeze(-1)
    terms = ppo_clip(seen.logprobs, rollout.behaviour, advantages, own.clip, own.clip)
    return Term(
        seen.mean(terms),
        {
            "adv_abs_mean": seen.mean(advantages.abs()),
            "ratio_mean": seen.mean(ratios(seen.logprobs, rollout.behaviour)),
        },
    )
