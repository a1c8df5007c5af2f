"""TPO: fit the policy to a target distribution over the group's rollouts.

See https://github.com/jeankaddour/tpo. `scores` are log-probs of whole rollouts, and `skills` are
their standardised rewards. Both are float tensors with the group axis `dim`.
"""

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term
from hgrpo.formulas.full_kl import collision_probability, entropy_of
from hgrpo.formulas.group import z_scores
from hgrpo.formulas.rule import CANDIDATES, GROUPS, GroupRule, Rule
from hgrpo.formulas.tensors import Tensor, check_shapes, torch


def tpo_target(old_scores: Tensor, skills: Tensor, eta: float, dim: int) -> Tensor:
    """Target distribution over `dim`: softmax(log_softmax(old_scores) + skills / eta), detached."""
    check_shapes(old_scores, skills)
    return (old_scores.log_softmax(dim) + skills / eta).softmax(dim).detach()


def unanchored_target(skills: Tensor, eta: float, dim: int) -> Tensor:
    """Target distribution softmax(skills / eta): `tpo_target` for a uniform old policy."""
    return (skills / eta).softmax(dim).detach()


def target_cross_entropy(scores: Tensor, target: Tensor, dim: int) -> Tensor:
    """-sum(target * log_softmax(scores)) over `dim`. The gradient is softmax(scores) - target."""
    check_shapes(scores, target)
    return -(target * scores.log_softmax(dim)).sum(dim)


def group_pg(scores: Tensor, skills: Tensor, eta: float, dim: int) -> Tensor:
    """-sum(skills / eta * scores) over `dim`: a policy gradient with the skills as advantages."""
    return -(skills.detach() / eta * scores).sum(dim)


class Target(Rule):
    """Base class of TPO and its variants. It defines the temperature."""

    eta: float = Field(1.0, gt=0, description="temperature: divisor of the advantages")


class TPO(Target, GroupRule):
    """Cross-entropy to a target: the old policy on a group, reweighted by exp(advantage / eta).

    Kept from the source: the target distribution over the rollouts of a group, which is based on
    the behaviour policy.
    """

    agents = True
    needs = GROUPS

    def target(self, old: Tensor, skills: Tensor) -> Tensor:
        """The target distribution over the rollouts of a group, [..., K]."""
        return tpo_target(old, skills, self.eta, -1)

    def loss(self, scores: Tensor, old: Tensor, skills: Tensor) -> Tensor:
        return target_cross_entropy(scores, self.target(old, skills), -1)

    def term(self, seen: Seen) -> Term:
        skills = z_scores(seen.rollout.rewards, -1)
        return self.fit(seen, skills, self.target(seen.old_scores, skills))

    def fit(self, seen: Seen, skills: Tensor, target: Tensor) -> Term:
        """The loss for a target [S, N, K], and metrics to log."""
        loss = seen.group_mean(target_cross_entropy(seen.scores, target, -1))
        means = _about(target, skills)
        return Term(loss, {name: seen.group_mean(values) for name, values in means.items()})


class TPONoAnchor(TPO):
    """Cross-entropy to a target that does not depend on the old policy.

    The target is softmax(advantages / eta) over a group. Changed: groups with equal rewards get no
    gradient. Without this change, they would pull the policy towards a uniform distribution.
    """

    def target(self, old: Tensor, skills: Tensor) -> Tensor:
        return unanchored_target(skills, self.eta, -1)

    def term(self, seen: Seen) -> Term:
        rewards = seen.rollout.rewards
        skills = z_scores(rewards, -1)
        same = (rewards.amax(-1) == rewards.amin(-1)).unsqueeze(-1)
        share = seen.scores.detach().softmax(-1)
        return self.fit(seen, skills, torch.where(same, share, self.target(share, skills)))


class GroupPG(Target, GroupRule):
    """A policy gradient on whole rollouts with the same advantages as TPO."""

    agents = True
    needs = GROUPS

    def loss(self, scores: Tensor, old: Tensor, skills: Tensor) -> Tensor:
        return group_pg(scores, skills, self.eta, -1)

    def term(self, seen: Seen) -> Term:
        skills = z_scores(seen.rollout.rewards, -1)
        loss = seen.group_mean(self.loss(seen.scores, seen.old_scores, skills))
        return Term(loss, {"tpo_skill_abs_mean": seen.group_mean(skills.abs().mean(-1))})


class TPOFullAction(Target):
    """TPO over all actions of a bandit; only the sampled action has a reward.

    This rule comes from the original sandbox.
    """

    agents_lack = "a policy with few actions"
    needs = ("digits", "on_policy", "one_epoch", "clean")

    def term(self, seen: Seen) -> Term:
        excess = seen.over_tokens(seen.rollout.rewards) - collision_probability(seen.table)
        actions = seen.rollout.actions.unsqueeze(-1)
        scores = torch.zeros_like(seen.table).scatter(-1, actions, excess.unsqueeze(-1))
        skills = z_scores(scores, -1)
        target = tpo_target(seen.table.detach(), skills, self.eta, -1)
        loss = seen.mean(target_cross_entropy(seen.table, target, -1))
        means = {**_about(target, skills), "tpo_sample_adv_mean": excess}
        return Term(loss, seen.means(means))


class TPOToken(Target):
    """TPO in which the candidate tokens of a prefix form a group.

    This rule comes from the original sandbox.
    """

    agents_lack = "rewards of several candidates at every token"
    needs = CANDIDATES
    candidates = True

    def term(self, seen: Seen) -> Term:
        candidates = seen.rollout.candidates
        current = seen.table.gather(-1, candidates.actions)
        skills = z_scores(candidates.rewards, -1)
        target = tpo_target(candidates.behaviour, skills, self.eta, -1)
        loss = seen.mean(target_cross_entropy(current, target, -1))
        means = {**_about(target, skills), **candidates.columns()}
        return Term(loss, seen.means(means))


def _about(target: Tensor, skills: Tensor) -> dict[str, Tensor]:
    """Metrics to log, [...] each, for a target [..., K] and the advantages `skills` [..., K]."""
    return {
        "tpo_target_entropy": entropy_of(target),
        "tpo_target_top_prob": target.amax(-1),
        "tpo_skill_abs_mean": skills.abs().mean(-1),
    }
