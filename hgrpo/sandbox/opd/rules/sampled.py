"""The divergence as a reward of the sampled token."""

from hgrpo.learning.objectives.clip import ppo_clip
from hgrpo.learning.objectives.importance import ratios
from hgrpo.learning.objectives.sampled_kl import teacher_rewards
from hgrpo.sandbox.opd.diagnostics import teacher_of
from hgrpo.sandbox.opd.rule_settings import Clip
from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rollout import Seen, Term


def clipped(seen: Seen, own: Clip) -> Term:
    """OPDPG: a clipped policy gradient, the advantage of a token being its own reward."""
    old = seen.rollout.behaviour
    advantages = teacher_rewards(old, taken(teacher_of(seen), seen.rollout.actions))
    mean = seen.mean(advantages)
    return Term(
        seen.mean(ppo_clip(seen.logprobs, old, advantages, own.clip, own.clip)),
        {
            "sampled_reverse_kl": -mean,
            "opd_advantage_mean": mean,
            "ratio_mean": seen.mean(ratios(seen.logprobs, old)),
        },
    )
