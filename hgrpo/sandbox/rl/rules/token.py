"""Rules that compare candidates for the next token at every sampled prefix.

One pass over the rollouts gives the log-probs of all candidates of all prefixes.
"""

from hgrpo.learning.objectives.clip import ppo_clip
from hgrpo.learning.objectives.full_kl import entropy_of
from hgrpo.learning.objectives.group import z_scores
from hgrpo.learning.objectives.importance import ratios
from hgrpo.learning.objectives.kl import kl_k3
from hgrpo.learning.objectives.tpo import target_cross_entropy, tpo_target
from hgrpo.sandbox.rl.rule_settings import Clip, Target
from hgrpo.sandbox.rollout import Seen, Term


def tpo_token(seen: Seen, own: Target) -> Term:
    """TPOToken: at every prefix, the old policy over the candidates, tilted by skill."""
    candidates = seen.rollout.candidates
    current = seen.table.gather(-1, candidates.actions)
    skills = z_scores(candidates.rewards, -1)
    target = tpo_target(candidates.behaviour, skills, own.eta, -1)
    loss = seen.mean(target_cross_entropy(current, target, -1))
    return Term(
        loss,
        {
            "tpo_target_entropy": seen.mean(entropy_of(target)),
            "tpo_target_top_prob": seen.mean(target.amax(-1)),
            "tpo_skill_abs_mean": seen.mean(skills.abs().mean(-1)),
            **_rewards(seen),
        },
    )


def grpo_token(seen: Seen, own: Clip) -> Term:
    """GRPOToken: z-scores over the candidates of a prefix, whose clipped terms add up."""
    candidates = seen.rollout.candidates
    current = seen.table.gather(-1, candidates.actions)
    advantages = z_scores(candidates.rewards, -1)
    divergence = kl_k3(current, candidates.behaviour)
    terms = ppo_clip(current, candidates.behaviour, advantages, own.clip, own.clip)
    loss = seen.mean((terms + own.beta * divergence).sum(-1))
    return Term(
        loss,
        {
            "adv_abs_mean": seen.mean(advantages.abs().mean(-1)),
            "ratio_mean": seen.mean(ratios(current, candidates.behaviour).mean(-1)),
            "reverse_kl_mean": seen.mean(divergence.detach().mean(-1)),
            **_rewards(seen),
        },
    )


def _rewards(seen: Seen) -> dict:
    rewards = seen.rollout.candidates.rewards
    return {
        "candidate_reward": seen.mean(rewards.mean(-1)),
        "behavior_token_reward": seen.mean(rewards[..., 0]),
    }
