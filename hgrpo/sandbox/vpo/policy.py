"""A policy whose slots answer independently given the prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hgrpo.sandbox.draws import pick
from hgrpo.sandbox.nets.layout import Part, draw_weights, linear, linear_parts, unpack
from hgrpo.sandbox.policies import Sampled


@dataclass(frozen=True)
class SetPolicy:
    """A network that adds prompt and slot embeddings, followed by a tanh layer and a linear layer.

    `inputs` are prompt indices, int64 [S, N]. An answer is one token, so T is 1.
    """

    prompts: int
    slots: int
    actions: int
    hidden: int

    @property
    def parts(self) -> tuple[Part, ...]:
        # Draw the slots' weights last, so that the other initial weights do not change with the
        # number of slots.
        return (
            Part("prompts", (self.prompts, self.hidden), "normal"),
            *linear_parts("hidden", self.hidden, self.hidden),
            *linear_parts("head", self.hidden, self.actions),
            Part("slots", (self.slots, self.hidden), "normal"),
        )

    def init(self, seeds: Sequence[int], name: str = "policy") -> Tensor:
        return draw_weights(self.parts, seeds, name)

    def slot_table(self, weights: Tensor) -> Tensor:
        """Log-probs [S, prompts, M, V] of every action of every slot, for every prompt."""
        tensors = unpack(self.parts, weights)
        mixed = tensors["prompts"].unsqueeze(2) + tensors["slots"].unsqueeze(1)
        hidden = torch.tanh(linear(tensors, "hidden", mixed.flatten(1, 2)))
        logits = linear(tensors, "head", hidden).unflatten(1, (self.prompts, self.slots))
        return logits.log_softmax(-1)

    def table(self, weights: Tensor, inputs: Tensor, actions: Tensor) -> Tensor:
        """Log-probs [S, N, K, M, 1, V] of every action."""
        seeds = torch.arange(len(weights)).unsqueeze(1)
        table = self.slot_table(weights)[seeds, inputs]
        return table[:, :, None, :, None].expand(*actions.shape, -1)

    @torch.no_grad()
    def sample(self, weights: Tensor, inputs: Tensor, draws: Tensor) -> Sampled:
        table = self.table(weights, inputs, draws)
        return Sampled(pick(table, draws), table)

    @torch.no_grad()
    def greedy(self, weights: Tensor, inputs: Tensor) -> Sampled:
        """Emit the most likely answer in every slot; K is 1."""
        shape = inputs[:, :, None, None, None].expand(-1, -1, 1, self.slots, 1)
        table = self.table(weights, inputs, shape)
        return Sampled(table.argmax(-1), table)
