"""Rewards to go, from the correctness of single tokens. The rule is the original sandbox's own."""

from hgrpo.formulas.batch import Seen, Term
from hgrpo.formulas.dg import Gate, dg_gates
from hgrpo.formulas.distillation import rewards_to_go
from hgrpo.formulas.full_kl import collision_probability
from hgrpo.formulas.pg import weighted
from hgrpo.formulas.tensors import Tensor, torch


def mean_to_go(correct: Tensor, scored: Tensor) -> Tensor:
    """Mean of `correct` over the scored positions from t on, in the shape of `correct`.

    Where no scored position is left the mean is 0. With all positions scored this is the plain
    mean of the remaining tokens.

    Args:
        correct: float [..., T], 1 for a right token.
        scored: float [T], 1 where the reward reads the position.
    """
    return rewards_to_go(correct * scored) / rewards_to_go(scored).clamp(min=1.0)


class DGToken(Gate):
    """DG on the mean correctness from the token on, less the collision probability.

    The credit is the original's own; it reads whether single tokens are right. Where the reward
    does not read a position, nothing is subtracted there: as rewards to go are at least 0, any
    token there is reinforced.
    """

    agents_lack = "a reward for every token"
    needs = ("token_rewards", "clean")

    def term(self, seen: Seen) -> Term:
        advantages = self.token_credit(seen)
        gates = dg_gates(seen.logprobs, advantages, self.eta)
        to_go = mean_to_go(seen.correct, seen.scored)
        return weighted(seen, gates * advantages, gate_mean=gates, rtg_mean=to_go)

    def token_credit(self, seen: Seen) -> Tensor:
        return above_chance(seen, mean_to_go(seen.correct, seen.scored))


def above_chance(seen: Seen, credit: Tensor) -> Tensor:
    """Credit [S, N, K, M, T] less the collision probability where the reward reads the position."""
    return credit - torch.where(seen.scored > 0, collision_probability(seen.table), 0.0)
