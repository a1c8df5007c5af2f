"""A brake on tokens that are already likely."""

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term
from hgrpo.formulas.dg import Gate
from hgrpo.formulas.pg import weighted
from hgrpo.formulas.tensors import Tensor, check_shapes, torch


def entropy_guard(logprobs: Tensor, advantages: Tensor, actions: int, strength: float) -> Tensor:
    """1 - strength clip(p - 1 / actions, 0, 1) where A > 0, and 1 elsewhere; without a gradient.

    A success whose token is already more likely than chance is reinforced less. `actions` is the
    size of the vocabulary. The rule is the original sandbox's own.
    """
    check_shapes(logprobs, advantages)
    excess = (logprobs.detach().exp() - 1.0 / actions).clamp(0.0, 1.0)
    return torch.where(advantages > 0, 1.0 - strength * excess, torch.ones_like(excess))


class DGEntropyGuard(Gate):
    """DG, where successes that are likely already weigh less.

    The brake is the original's own. It reads the probability of the sampled token alone.
    """

    strength: float = Field(0.5, ge=0, le=1, description="how much less a sure success weighs")

    def term(self, seen: Seen) -> Term:
        gates, actions = self.gates(seen), seen.table.shape[-1]
        guard = entropy_guard(seen.logprobs, seen.advantages, actions, self.strength)
        weights = guard * gates * seen.advantages
        return weighted(seen, weights, gate_mean=gates, entropy_guard_mean=guard)
