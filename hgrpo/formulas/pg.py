"""Policy-gradient losses with and without truncated importance weights."""

from collections.abc import Mapping

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term
from hgrpo.formulas.importance import importance_weights
from hgrpo.formulas.rule import Rule, TokenRule
from hgrpo.formulas.tensors import Tensor, check_shapes, torch


def policy_gradient(logprobs: Tensor, weights: Tensor) -> Tensor:
    """-w log p with w detached; with w = A, this is the REINFORCE estimator.

    Williams 1992, "Simple Statistical Gradient-Following Algorithms for Connectionist
    Reinforcement Learning", https://doi.org/10.1007/BF00992696.
    """
    check_shapes(logprobs, weights)
    return -logprobs * weights.detach()


def pg_weights(logprobs: Tensor, behaviour: Tensor, advantages: Tensor, cap: float) -> Tensor:
    """min(r, cap) A with r = exp(logprobs - behaviour), per token.

    Ionides 2008, "Truncated Importance Sampling", https://doi.org/10.1198/106186008X320456.
    """
    return importance_weights(logprobs, behaviour, cap) * advantages.detach()


def traj_pg_weights(
    logprobs: Tensor, behaviour: Tensor, advantages: Tensor, mask: Tensor, cap: float
) -> Tensor:
    """min(prod_t r_t, cap) A: each token is weighted by the ratio of the whole trajectory.

    For trajectories of one token, this equals `pg_weights`. The product is the exact importance
    weight of off-policy evaluation: Precup, Sutton and Singh 2000, "Eligibility Traces for
    Off-Policy Policy Evaluation", https://scholarworks.umass.edu/cs_faculty_pubs/80.

    Args:
        logprobs: float [..., T].
        mask: float [..., T], 1 for valid tokens and 0 for padding.
    """
    whole = ((logprobs - behaviour) * mask).sum(-1, keepdim=True)
    return torch.exp(whole).clamp(max=cap).detach() * advantages.detach()


class Capped(Rule):
    """Base class of rules with truncated importance weights."""

    cap: float = Field(10.0, gt=0, description="maximum importance weight")


class REINFORCE(TokenRule):
    """The policy gradient without importance weights.

    The advantage is the rollout's reward minus the run's `baseline`.
    """

    agents = True

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return policy_gradient(logprobs, advantages)


class PG(Capped, TokenRule):
    """REINFORCE with truncated importance weights per token.

    Kept from the paper: truncation. Changed: a token's weight is its own ratio only. The exact
    weight would also contain the ratios of all earlier tokens.
    """

    agents = True
    needs = ("off_policy",)

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return policy_gradient(logprobs, pg_weights(logprobs, old, advantages, self.cap))

    def columns(self, seen: Seen) -> Mapping[str, Tensor]:
        return {"iw_mean": importance_weights(seen.logprobs, seen.rollout.behaviour, self.cap)}


class TrajPG(Capped):
    """REINFORCE with one truncated importance weight per rollout.

    Kept from the paper: the product of a trajectory's ratios. Changed: `cap` bounds the product.
    """

    needs = ("off_policy",)

    def term(self, seen: Seen) -> Term:
        old, ones = seen.rollout.behaviour, torch.ones_like(seen.logprobs)
        whole = traj_pg_weights(seen.logprobs, old, ones, seen.rollout.mask, self.cap)
        return weighted(seen, whole * seen.advantages, iw_mean=whole)


def weighted(seen: Seen, weights: Tensor, **metrics: Tensor) -> Term:
    """Mean of -w log p over the tokens included in the update, and the means of `metrics`."""
    return Term(seen.mean(policy_gradient(seen.logprobs, weights)), seen.means(metrics))
