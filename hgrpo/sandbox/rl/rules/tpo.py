"""TPO: the policy is fitted to a target over a group's rollouts, or over all actions."""

import torch
from torch import Tensor

from hgrpo.learning.objectives.full_kl import collision_probability, entropy_of
from hgrpo.learning.objectives.group import z_scores
from hgrpo.learning.objectives.tpo import (
    group_pg as pull,
)
from hgrpo.learning.objectives.tpo import (
    target_cross_entropy,
    tpo_target,
    unanchored_target,
)
from hgrpo.sandbox.rl.rule_settings import Target
from hgrpo.sandbox.rollout import Seen, Term


def tpo(seen: Seen, own: Target) -> Term:
    """TPO: the policy is fitted to the old policy, tilted by skill."""
    skills = z_scores(seen.rollout.rewards, -1)
    return _fit(seen, skills, tpo_target(seen.old_scores, skills, own.eta, -1))


def tpo_no_anchor(seen: Seen, own: Target) -> Term:
    """TPONoAnchor: the policy is fitted to the softmax of the skills; the old policy plays no part.

    A group of equal rewards has no skill; its target would be uniform, which is a preference. Such
    a group has no loss.
    """
    rewards = seen.rollout.rewards
    skills = z_scores(rewards, -1)
    same = (rewards.amax(-1) == rewards.amin(-1)).unsqueeze(-1)
    own_share = seen.scores.detach().softmax(-1)
    target = torch.where(same, own_share, unanchored_target(skills, own.eta, -1))
    return _fit(seen, skills, target)


def group_pg(seen: Seen, own: Target) -> Term:
    """GroupPG: a policy gradient with the same skills."""
    skills = z_scores(seen.rollout.rewards, -1)
    loss = seen.group_mean(pull(seen.scores, skills, own.eta, -1))
    return Term(loss, {"tpo_skill_abs_mean": seen.group_mean(skills.abs().mean(-1))})


def tpo_full_action(seen: Seen, own: Target) -> Term:
    """TPOFullAction: a target over all actions of a bandit; only the sampled one has a score."""
    excess = seen.over_tokens(seen.rollout.rewards) - collision_probability(seen.table)
    actions = seen.rollout.actions.unsqueeze(-1)
    scores = torch.zeros_like(seen.table).scatter(-1, actions, excess.unsqueeze(-1))
    skills = z_scores(scores, -1)
    target = tpo_target(seen.table.detach(), skills, own.eta, -1)
    loss = seen.mean(target_cross_entropy(seen.table, target, -1))
    return Term(
        loss,
        {
            "tpo_target_entropy": seen.mean(entropy_of(target)),
            "tpo_target_top_prob": seen.mean(target.amax(-1)),
            "tpo_skill_abs_mean": seen.mean(skills.abs().mean(-1)),
            "tpo_sample_adv_mean": seen.mean(excess),
        },
    )


def _fit(seen: Seen, skills: Tensor, target: Tensor) -> Term:
    loss = seen.group_mean(target_cross_entropy(seen.scores, target, -1))
    return Term(
        loss,
        {
            "tpo_target_entropy": seen.group_mean(entropy_of(target)),
            "tpo_target_top_prob": seen.group_mean(target.amax(-1)),
            "tpo_skill_abs_mean": seen.group_mean(skills.abs().mean(-1)),
        },
    )
