"""A discount for the age of a rollout. It is the original sandbox's own."""

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term
from hgrpo.formulas.dg import Gate
from hgrpo.formulas.pg import weighted
from hgrpo.formulas.tensors import Tensor, torch


def freshness(age: Tensor, decay: float) -> Tensor:
    """exp(-decay age), in the shape of `age`, which counts training steps since sampling."""
    return torch.exp(-decay * age.float())


class FreshDG(Gate):
    """DG, where the whole batch weighs less, the older it is.

    The discount is the original's own.
    """

    needs = ("ages", "ages_vary")

    decay: float = Field(0.02, ge=0, description="a batch of age a weighs exp(-decay a)")

    def term(self, seen: Seen) -> Term:
        fresh = seen.per_seed(freshness(seen.rollout.age, self.decay))
        gates = self.gates(seen)
        return weighted(
            seen,
            fresh * gates * seen.advantages,
            gate_mean=gates,
            freshness_weight=fresh,
            batch_age=seen.per_seed(seen.rollout.age.float()),
        )
