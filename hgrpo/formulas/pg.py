"""The score-function gradient, plain and with capped importance weights."""

from collections.abc import Mapping

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term
from hgrpo.formulas.importance import importance_weights
from hgrpo.formulas.rule import Rule, TokenRule
from hgrpo.formulas.tensors import Tensor, check_shapes, torch


def policy_gradient(logprobs: Tensor, weights: Tensor) -> Tensor:
    """-w log p, where w carries no gradient; with w = A the REINFORCE estimator.

    Williams 1992, "Simple Statistical Gradient-Following Algorithms for Connectionist
    Reinforcement Learning", https://doi.org/10.1007/BF00992696.
    """
    check_shapes(logprobs, weights)
    return -logprobs * weights.detach()


def pg_weights(logprobs: Tensor, behaviour: Tensor, advantages: Tensor, cap: float) -> Tensor:
    """min(r, cap) A with r = exp(logprobs - behaviour), token by token.

    Ionides 2008, "Truncated Importance Sampling", https://doi.org/10.1198/106186008X320456.
    """
    return importance_weights(logprobs, behaviour, cap) * advantages.detach()


def traj_pg_weights(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, mask: Tensor, cap: float
) -> Tensor:
    """min(prod_t r_t, cap) A: every token of a trajectory gets the trajectory's own ratio.

    On trajectories of one token these are the weights of `pg.pg_weights`. The product is the
    exact importance weight of off-policy evaluation: Precup, Sutton and Singh 2000, "Eligibility
    Traces for Off-Policy Policy Evaluation", https://scholarworks.umass.edu/cs_faculty_pubs/80.

    Args:
        logprobs: float [..., T]; tokens lie along the last axis.
        mask: float [..., T], 1 for tokens that exist and 0 for others.
    """
    whole = ((logprobs - behaviour) * mask).sum(-1, keepdim=True)
    return torch.exp(whole).clamp(max=cap).detach() * advantages.detach()


class Capped(Rule):
    """The cap of importance weights."""

    cap: float = Field(10.0, gt=0, description="largest importance weight")


class REINFORCE(TokenRule):
    """The weight of a token is its advantage, whatever its ratio.

    Kept whole. The run's `baseline` is subtracted.
    """

    agents = True

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return policy_gradient(logprobs, advantages)


class PG(Capped, TokenRule):
    """REINFORCE, where every token has its own capped ratio.

    Kept: truncated importance weights, one for each token. Left out: the ratios of earlier tokens,
    by which an exact weight is multiplied.
    """

    agents = True
    needs = ("off_policy",)

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return policy_gradient(logprobs, pg_weights(logprobs, old, advantages, self.cap))

    def columns(self, seen: Seen) -> Mapping[str, Tensor]:
        return {"iw_mean": importance_weights(seen.logprobs, seen.rollout.behaviour, self.cap)}


class TrajPG(Capped):
    """REINFORCE, where every token has the capped ratio of its whole rollout.

    Kept: the product of a trajectory's ratios. Changed: `cap` bounds the product.
    """

    needs = ("off_policy",)

    def term(self, seen: Seen) -> Term:
        old, ones = seen.rollout.behaviour, torch.ones_like(seen.logprobs)
        whole = traj_pg_weights(seen.logprobs, old, ones, seen.rollout.mask, self.cap)
        return weighted(seen, whole * seen.advantages, iw_mean=whole)


def weighted(seen: Seen, weights: Tensor, **metrics: Tensor) -> Term:
    """The mean of -w log p over the tokens that take part; the log gets the means of `metrics`."""
    return Term(seen.mean(policy_gradient(seen.logprobs, weights)), seen.means(metrics))
