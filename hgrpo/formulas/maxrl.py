"""MaxRL: advantages divided by the group's success rate."""

from hgrpo.formulas.batch import Seen, Term
from hgrpo.formulas.group import centred
from hgrpo.formulas.importance import importance_weights
from hgrpo.formulas.pg import Capped, pg_weights, weighted
from hgrpo.formulas.rule import GROUPS
from hgrpo.formulas.tensors import Tensor

_FLOOR = 1e-8


def maxrl_advantages(rewards: Tensor, dim: int) -> Tensor:
    """(R - mean) / (mean + 1e-8) over the group's axis `dim`; rewards are 0 or 1.

    In expectation this is the gradient of a truncated series of log-likelihood: "Maximum
    Likelihood Reinforcement Learning", https://arxiv.org/abs/2602.02710.
    """
    return centred(rewards, dim) / (rewards.mean(dim, keepdim=True) + _FLOOR)


class MaxRL(Capped):
    """Centred rewards over the group's success rate.

    Kept: the advantage. The ratio is capped as in PG.
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
