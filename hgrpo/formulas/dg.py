"""The delightful policy gradient: a gate on advantage times surprisal.

Osband 2026, "Delightful Policy Gradient", https://arxiv.org/abs/2603.14608.
"""

from collections.abc import Mapping

from pydantic import Field

from hgrpo.formulas.batch import Seen
from hgrpo.formulas.pg import policy_gradient
from hgrpo.formulas.rule import Rule, TokenRule
from hgrpo.formulas.tensors import Tensor, torch


def delight(logprobs: Tensor, advantages: Tensor) -> Tensor:
    """A s with the surprisal s = -log p, in nats; without a gradient."""
    return (advantages * -logprobs).detach()


def dg_gates(logprobs: Tensor, advantages: Tensor, eta: float) -> Tensor:
    """sigmoid(A s / eta): near 1 for rare successes, near 0 for rare failures, 1/2 at s = 0."""
    return torch.sigmoid(delight(logprobs, advantages) / eta)


def dg_weights(logprobs: Tensor, advantages: Tensor, eta: float) -> Tensor:
    """The gate times A."""
    return dg_gates(logprobs, advantages, eta) * advantages.detach()


class Gate(Rule):
    """The temperature of the gate, for DG and its variants."""

    eta: float = Field(
        1.0, gt=0, description="temperature of the gate sigmoid(advantage * surprisal / eta)"
    )

    def gates(self, seen: Seen) -> Tensor:
        """The gates of the run's advantages, [S, N, K, M, T]."""
        return dg_gates(seen.logprobs, seen.advantages, self.eta)


class DG(Gate, TokenRule):
    """An advantage is gated by the sigmoid of delight, advantage times surprisal, over eta.

    Kept: the gate. An advantage is the rollout's reward less the run's `baseline`.
    """

    agents = True

    def terms(self, logprobs: Tensor, old: Tensor, advantages: Tensor) -> Tensor:
        return policy_gradient(logprobs, dg_weights(logprobs, advantages, self.eta))

    def columns(self, seen: Seen) -> Mapping[str, Tensor]:
        return {"gate_mean": self.gates(seen)}


class ReplayDG(DG):
    """DG on replayed batches.

    Without importance weights, as in the original.
    """

    agents = False
    needs = ("replay",)
