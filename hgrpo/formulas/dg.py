"""The delightful policy gradient (DG), with a gate that depends on advantage * surprisal.

Osband 2026, "Delightful Policy Gradient", https://arxiv.org/abs/2603.14608.
"""

from collections.abc import Mapping

from pydantic import Field

from hgrpo.formulas.batch import Seen
from hgrpo.formulas.pg import policy_gradient
from hgrpo.formulas.rule import Rule, TokenRule
from hgrpo.formulas.tensors import Tensor, torch


def delight(logprobs: Tensor, advantages: Tensor) -> Tensor:
    """Advantage A times surprisal s = -log p, in nats; no gradient."""
    return (advantages * -logprobs).detach()


def dg_gates(logprobs: Tensor, advantages: Tensor, eta: float) -> Tensor:
    """sigmoid(A s / eta): near 1 for rare successes, near 0 for rare failures, 1/2 at s = 0."""
    return torch.sigmoid(delight(logprobs, advantages) / eta)


def dg_weights(logprobs: Tensor, advantages: Tensor, eta: float) -> Tensor:
    """The gate times the advantage A."""
    return dg_gates(logprobs, advantages, eta) * advantages.detach()


class Gate(Rule):
    """Base class of DG and its variants. It defines the temperature of the gate."""

    eta: float = Field(
        1.0, gt=0, description="temperature of the gate sigmoid(advantage * surprisal / eta)"
    )

    def gates(self, seen: Seen) -> Tensor:
        """The gates for the run's advantages, [S, N, K, M, T]."""
        return dg_gates(seen.logprobs, seen.advantages, self.eta)


class DG(Gate, TokenRule):
    """The policy gradient with advantages gated by sigmoid(advantage * surprisal / eta).

    Kept from the paper: the gate. The advantage is the rollout's reward minus the run's `baseline`.
    """

    agents = True

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return policy_gradient(logprobs, dg_weights(logprobs, advantages, self.eta))

    def columns(self, seen: Seen) -> Mapping[str, Tensor]:
        return {"gate_mean": self.gates(seen)}


class ReplayDG(DG):
    """DG on replayed batches.

    As in the original sandbox, there are no importance weights.
    """

    agents = False
    needs = ("replay",)
