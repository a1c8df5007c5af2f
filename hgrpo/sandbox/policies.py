"""Policies for many seeds. A policy combines a net with methods to read inputs and emit actions.

Shapes are those of `hgrpo.formulas.batch`; V is the number of actions. `table` computes
differentiable log-probs of all actions at every position of given outputs, in one pass. `listed`
does the same for all possible outputs. `sample` samples outputs, and `greedy` always emits the most
likely action.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from hgrpo.formulas.batch import taken
from hgrpo.sandbox.draws import pick
from hgrpo.sandbox.every import Tree, every
from hgrpo.sandbox.nets.layout import MLP
from hgrpo.sandbox.nets.transformer import Cache, Reading, Transformer

# Raw inputs, or the output of `policy.read` for the raw inputs and the current weights.
Inputs = Tensor | Reading


class Sampled(NamedTuple):
    """Sampled actions, int64 [S, N, K, M, T], and log-probs of all V actions at each position."""

    actions: Tensor
    table: Tensor

    @property
    def logprobs(self) -> Tensor:
        """Log-probs of the actions, [S, N, K, M, T]."""
        return taken(self.table, self.actions)


@dataclass(frozen=True)
class BanditPolicy:
    """A policy that emits one action (T is 1), given features `inputs` [S, N, F]."""

    net: MLP

    def init(self, seeds: Sequence[int], name: str = "policy") -> Tensor:
        return self.net.init(seeds, name)

    def read(self, weights: Tensor, inputs: Tensor) -> Tensor:
        """Return the inputs unchanged, because nothing can be precomputed."""
        return inputs

    def table(self, weights: Tensor, inputs: Tensor, actions: Tensor) -> Tensor:
        logprobs = self.net.logits(weights, inputs).log_softmax(-1)[:, :, None, None, None]
        return logprobs.expand(*actions.shape, -1)

    def listed(self, weights: Tensor, inputs: Tensor) -> Sampled:
        """All actions for each input, along axis K."""
        logprobs = self.net.logits(weights, inputs).log_softmax(-1)[:, :, None, None, None]
        count = logprobs.shape[-1]
        actions = torch.arange(count)[:, None, None].expand(*inputs.shape[:2], -1, -1, -1)
        return Sampled(actions, logprobs.expand(-1, -1, count, -1, -1, -1))

    @torch.no_grad()
    def sample(self, weights: Tensor, inputs: Tensor, draws: Tensor) -> Sampled:
        table = self.table(weights, inputs, draws)
        return Sampled(pick(table, draws), table)

    @torch.no_grad()
    def greedy(self, weights: Tensor, inputs: Tensor) -> Sampled:
        """Emit the most likely action every time; K and M are 1."""
        table = self.table(weights, inputs, inputs[:, :, :1, None, None])
        return Sampled(table.argmax(-1), table)


@dataclass(frozen=True)
class SequencePolicy:
    """A policy that emits tokens after prompts `inputs`, int64 [S, N, L]."""

    net: Transformer
    horizon: int

    def init(self, seeds: Sequence[int], name: str = "policy") -> Tensor:
        return self.net.init(seeds, name)

    def read(self, weights: Tensor, inputs: Inputs) -> Reading:
        """Process the prompts; return their keys, values and last logits."""
        return inputs if isinstance(inputs, Reading) else self.net.read(weights, inputs)

    def table(self, weights: Tensor, inputs: Inputs, actions: Tensor) -> Tensor:
        read = self.read(weights, inputs)
        logits = self.net.continued(weights, read, actions[..., :-1].flatten(2, 3))
        return logits.log_softmax(-1).unflatten(2, actions.shape[2:4])

    def listed(self, weights: Tensor, inputs: Inputs) -> Sampled:
        """All possible outputs for each input, along axis K. Shared prefixes are computed once."""
        read = self.read(weights, inputs)
        tree = Tree.of(self.net.vocabulary, self.horizon)
        logprobs = self.net.branched(weights, read, tree).log_softmax(-1)
        table = logprobs.index_select(2, tree.paths.flatten()).unflatten(2, tree.paths.shape)
        outputs = every(self.net.vocabulary, self.horizon)[:, None]
        return Sampled(outputs.expand(*table.shape[:2], -1, -1, -1), table.unsqueeze(3))

    @torch.no_grad()
    def sample(self, weights: Tensor, inputs: Inputs, draws: Tensor) -> Sampled:
        return self._unroll(weights, self.read(weights, inputs), draws, draws.shape[1:4])

    @torch.no_grad()
    def greedy(self, weights: Tensor, inputs: Inputs) -> Sampled:
        """Emit the most likely action every time; K and M are 1."""
        read = self.read(weights, inputs)
        return self._unroll(weights, read, None, (read.logits.shape[1], 1, 1))

    def _unroll(
        self, weights: Tensor, read: Reading, draws: Tensor | None, shape: Sequence[int]
    ) -> Sampled:
        """Sample `horizon` tokens with `draws` [S, N, K, M, T]; without `draws`, decode greedily.

        `shape` is (N, K, M).
        """
        rows = shape[1] * shape[2]
        logits = read.logits.repeat_interleave(rows, 1)
        cache = Cache(read.prefix, self.horizon, rows)
        draws = None if draws is None else draws.flatten(1, 3)
        tensors = self.net.tensors(weights)
        actions, tables = [], []
        for step in range(self.horizon):
            table = logits.log_softmax(-1)
            token = table.argmax(-1) if draws is None else pick(table, draws[..., step])
            actions.append(token)
            tables.append(table)
            if step + 1 < self.horizon:
                logits = self.net.extend(tensors, token, cache)
        return Sampled(
            torch.stack(actions, -1).unflatten(1, shape),
            torch.stack(tables, -2).unflatten(1, shape),
        )


# A policy accepts preprocessed inputs, so that each input is processed only once.
Policy = BanditPolicy | SequencePolicy
