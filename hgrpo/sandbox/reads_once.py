"""A policy that reads a batch's inputs once, for sampling and for the first update on it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hgrpo.sandbox.learner import Learner
from hgrpo.sandbox.policies import Inputs, Policy, Sampled


@dataclass(frozen=True)
class _Read:
    """What a policy has read of `inputs` under `weights`, with its gradient."""

    weights: Tensor
    inputs: Tensor
    read: Inputs


@dataclass
class ReadsOnce:
    """Wraps a policy, and keeps what it last read under the weights of the learner's next update.

    The first update on a batch often has the inputs and the weights that sampled it. Who samples
    with `Learner.leaf` lets that update use what was read then. Readings under other weights are
    not kept: their graph may be freed before they are wanted again.
    """

    policy: Policy
    learner: Learner
    _kept: _Read | None = field(default=None, init=False)

    def init(self, seeds: Sequence[int], name: str = "policy") -> Tensor:
        return self.policy.init(seeds, name)

    def read(self, weights: Tensor, inputs: Inputs) -> Inputs:
        """Inputs as the policy reads them."""
        if weights is not self.learner.leaf:
            return self.policy.read(weights, inputs)
        kept = self._kept
        if kept is None or kept.weights is not weights or kept.inputs is not inputs:
            with torch.enable_grad():
                kept = _Read(weights, inputs, self.policy.read(weights, inputs))
            self._kept = kept
        return kept.read

    def table(self, weights: Tensor, inputs: Inputs, actions: Tensor) -> Tensor:
        return self.policy.table(weights, self.read(weights, inputs), actions)

    def listed(self, weights: Tensor, inputs: Inputs) -> Sampled:
        return self.policy.listed(weights, self.read(weights, inputs))

    def sample(self, weights: Tensor, inputs: Inputs, draws: Tensor) -> Sampled:
        return self.policy.sample(weights, self.read(weights, inputs), draws)

    def greedy(self, weights: Tensor, inputs: Inputs) -> Sampled:
        return self.policy.greedy(weights, self.read(weights, inputs))
