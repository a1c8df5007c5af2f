"""Three ways in which the delightful gradient doubts a noisy reward.

`uncertainty` stands for how far rewards scatter: their deviation in the group, or in the batch. The
rules are the original sandbox's own.
"""

from pydantic import Field

from hgrpo.formulas.batch import Seen, Term
from hgrpo.formulas.dg import Gate, delight, dg_gates, dg_weights
from hgrpo.formulas.pg import weighted
from hgrpo.formulas.tensors import Tensor, check_shapes, torch


def uncertain_gates(
    logprobs: Tensor, advantages: Tensor, uncertainty: Tensor, eta: float, scale: float
) -> Tensor:
    """sigmoid((A s - scale U) / eta).

    The more rewards scatter, the more delight a token needs to pass.
    """
    check_shapes(logprobs, uncertainty)
    return torch.sigmoid((delight(logprobs, advantages) - scale * uncertainty) / eta)


def filtered_dg_weights(
    logprobs: Tensor, advantages: Tensor, uncertainty: Tensor, eta: float, threshold: float
) -> Tensor:
    """The weights of `dg.dg_weights` where U <= threshold, and 0 elsewhere."""
    check_shapes(logprobs, uncertainty)
    return dg_weights(logprobs, advantages, eta) * (uncertainty <= threshold)


def shrunk_advantages(advantages: Tensor, uncertainty: Tensor, scale: float) -> Tensor:
    """A / (1 + scale U)."""
    return advantages / (1.0 + scale * uncertainty)


class Doubt(Gate):
    """How much the deviation of rewards counts."""

    scale: float = Field(1.0, ge=0, description="how much the deviation of rewards counts")


class UncertaintyDG(Doubt):
    """DG, where the gate subtracts the deviation of rewards.

    The doubt is the original's own; no model estimates it.
    """

    def term(self, seen: Seen) -> Term:
        doubt = uncertainty(seen)
        gates = uncertain_gates(seen.logprobs, seen.advantages, doubt, self.eta, self.scale)
        return weighted(seen, gates * seen.advantages, gate_mean=gates, uncertainty_mean=doubt)


class RewardVarianceDG(Doubt):
    """DG, where advantages shrink if rewards deviate.

    The shrinkage is the original's own.
    """

    def term(self, seen: Seen) -> Term:
        doubt = uncertainty(seen)
        shrunk = shrunk_advantages(seen.advantages, doubt, self.scale)
        gates = dg_gates(seen.logprobs, shrunk, self.eta)
        return weighted(seen, gates * shrunk, gate_mean=gates, uncertainty_mean=doubt)


class FilteredDG(Gate):
    """DG without a gradient where rewards deviate by more than the threshold.

    The filter is the original's own.
    """

    needs = ("filter_acts", "filter_compares")

    threshold: float = Field(
        0.5, ge=0, description="no gradient where rewards deviate by more than this"
    )

    def term(self, seen: Seen) -> Term:
        doubt = uncertainty(seen)
        surprising = (seen.logprobs, seen.advantages, doubt)
        return weighted(
            seen,
            filtered_dg_weights(*surprising, self.eta, self.threshold),
            gate_mean=self.gates(seen),
            uncertainty_mean=doubt,
            kept_frac=(doubt <= self.threshold).float(),
        )


def uncertainty(seen: Seen) -> Tensor:
    """Deviation of rewards in the group or, without groups, in the seed's batch."""
    rewards = seen.rollout.rewards
    if seen.rollout.group_size > 1:
        return seen.over_tokens(rewards.std(-1, correction=0, keepdim=True).expand_as(rewards))
    return seen.per_seed(rewards.flatten(1).std(1, correction=0))
