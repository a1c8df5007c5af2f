"""Variants of the policy gradient for the sandbox, with other advantages, weights or losses."""

from pydantic import Field

from hgrpo.formulas.batch import Rollout, Seen, Term, seed_mean
from hgrpo.formulas.group import centred, z_scores
from hgrpo.formulas.importance import importance_weights
from hgrpo.formulas.pg import Capped, pg_weights, weighted
from hgrpo.formulas.rule import GROUPS, Rule
from hgrpo.formulas.tensors import Tensor, check_shapes, torch

_FLOOR = 1e-8


def maxrl_advantages(rewards: Tensor, dim: int) -> Tensor:
    """(R - mean) / (mean + 1e-8) over the group axis `dim`; rewards are 0 or 1.

    In expectation, these advantages give the gradient of a truncated series expansion of the
    log-likelihood: "Maximum Likelihood Reinforcement Learning", https://arxiv.org/abs/2602.02710.
    """
    return centred(rewards, dim) / (rewards.mean(dim, keepdim=True) + _FLOOR)


class MaxRL(Capped):
    """PG whose advantages are centred rewards divided by the group's success rate.

    Kept from the paper: the advantage. The ratio is capped as in PG.
    """

    grouped = True
    needs = (*GROUPS, "right_or_wrong", "no_kl", "clean")

    def term(self, seen: Seen) -> Term:
        old = seen.rollout.behaviour
        advantages = seen.over_tokens(maxrl_advantages(seen.rollout.rewards, -1))
        return weighted(
            seen,
            pg_weights(seen.logprobs, old, advantages, self.cap),
            adv_abs_mean=advantages.abs(),
            iw_mean=importance_weights(seen.logprobs, old, self.cap),
        )


def prefix_values(rewards: Tensor, actions: Tensor) -> Tensor:
    """Values V [..., K, T + 1]: mean reward of all rollouts with the same first t tokens.

    Args:
        rewards: float [..., K].
        actions: int64 [..., K, T].
    """
    same = (actions.unsqueeze(-2) == actions.unsqueeze(-3)).to(rewards.dtype)
    shared = torch.cat([torch.ones_like(same[..., :1]), same.cumprod(-1)], -1)
    total = (shared * rewards[..., None, :, None]).sum(-2)
    return total / shared.sum(-2)


def tempo_advantages(rewards: Tensor, actions: Tensor) -> Tensor:
    """A_t = (R - mean + V(s_t+1) - V(s_t)) / std, float [..., K, T]; 0 for equal rewards.

    TEMPO is from https://arxiv.org/abs/2509.18314. See `prefix_values` for the arguments.
    """
    values = prefix_values(rewards, actions)
    change = values[..., 1:] - values[..., :-1]
    spread = rewards.std(-1, correction=0, keepdim=True).unsqueeze(-1)
    scaled = (centred(rewards, -1).unsqueeze(-1) + change) / spread.clamp(min=_FLOOR)
    return torch.where(spread < _FLOOR, 0.0, scaled)


class TEMPO(Capped):
    """PG whose advantage is a z-score plus the scaled change in the value of the prefix.

    Kept from the paper: the advantage. On bandits, it is the z-score. The ratio is capped as in PG.
    """

    grouped = True
    needs = GROUPS

    def term(self, seen: Seen) -> Term:
        old, advantages = seen.rollout.behaviour, self.token_credit(seen)
        return weighted(
            seen,
            pg_weights(seen.logprobs, old, advantages, self.cap),
            adv_abs_mean=advantages.abs(),
            td_nonzero_frac=_moved(seen.rollout),
            iw_mean=importance_weights(seen.logprobs, old, self.cap),
        )

    def token_credit(self, seen: Seen) -> Tensor:
        rollout = seen.rollout
        actions = rollout.actions.flatten(3)
        if actions.shape[-1] == 1:
            return seen.over_tokens(z_scores(rollout.rewards, -1))
        return tempo_advantages(rollout.rewards, actions).view_as(rollout.actions)


def _moved(rollout: Rollout) -> Tensor:
    """1 for tokens that change the value of the prefix, [S, N, K, M, T]; 0 on bandits."""
    values = prefix_values(rollout.rewards, rollout.actions.flatten(3))
    moved = (values.diff(dim=-1) != 0).float().view_as(rollout.actions)
    return moved if moved.shape[-1] > 1 else torch.zeros_like(moved)


def log_growth_weights(logprobs: Tensor, advantages: Tensor, success: Tensor) -> Tensor:
    """A / p for a success and A for a failure, for one-step tasks with rewards 0 and 1.

    Without a baseline, the gradient of a success is grad log p / p. In expectation, this is the
    gradient of the log success rate. With a baseline, failures also have gradients. The formula
    comes from the original sandbox.

    Args:
        success: float, 1 for a correct sample, else 0.
    """
    inverse = torch.exp(-logprobs.detach().clamp(min=-20.0))
    return advantages.detach() * torch.where(success > 0, inverse, torch.ones_like(inverse))


class LogGrowth(Rule):
    """The policy gradient, where the advantage of a success is divided by its action's probability.

    This rule comes from the original sandbox and is for one-step tasks.
    """

    needs = ("bandit", "no_kl", "clean")

    def term(self, seen: Seen) -> Term:
        success = seen.over_tokens(seen.rollout.rewards)
        weights = log_growth_weights(seen.logprobs, seen.advantages, success)
        return weighted(seen, weights, weight_mean=weights.abs())


def mirror_descent(log_ratio: Tensor, advantages: Tensor, tau: float) -> Tensor:
    """(tau log(p / p_behaviour) - A)^2 with A = R - E[R].

    It is 0 if p = p_behaviour exp(A / tau), a target that is not normalised. See
    "Kimi k1.5: Scaling Reinforcement Learning with LLMs", section 2.3,
    https://arxiv.org/abs/2501.12599, and its analysis, https://arxiv.org/abs/2602.05933.

    Args:
        log_ratio: float, the log-ratio of a whole rollout, with gradient.
    """
    check_shapes(log_ratio, advantages)
    return (tau * log_ratio - advantages.detach()).square()


class PMDMean(Rule):
    """Regression of a rollout's log-ratio on its reward minus the mean reward.

    Kept from the paper: the loss, (tau log-ratio - (R - mean R))^2. If the task provides the
    expected reward, it is used as mean R. Otherwise, mean R is the mean of the batch.
    """

    tau: float = Field(1.0, gt=0, description="temperature of the regression")

    def term(self, seen: Seen) -> Term:
        rollout = seen.rollout
        if rollout.expected is None:
            mean = seed_mean(rollout.rewards, rollout.keep)[:, None, None]
        else:
            mean = rollout.expected.unsqueeze(-1)
        log_ratio = seen.scores - seen.old_scores
        terms = mirror_descent(log_ratio, (rollout.rewards - mean).expand_as(log_ratio), self.tau)
        return Term(
            seed_mean(terms, rollout.keep),
            {"log_ratio_mean": seed_mean(log_ratio.detach(), rollout.keep)},
        )
