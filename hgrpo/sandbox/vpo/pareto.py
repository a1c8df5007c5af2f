"""The task pareto_front: seven answers to a prompt, with two rewards each."""

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from hgrpo.formulas import set_score
from hgrpo.sandbox import draws

GOLD = torch.tensor(set_score.GOLD)
# Five answers on the Pareto front, two below it.
_BASE = torch.tensor(
    [[1.0, 0.0], [0.85, 0.25], [0.6, 0.6], [0.25, 0.85], [0.0, 1.0], [0.3, 0.2], [0.05, 0.05]]
)


class ParetoFront:
    """For prompt i, the answers are rotated by i mod 7, and the rewards are swapped if i is odd."""

    actions = len(_BASE)

    def __init__(self, prompts: int):
        self.prompts = prompts

    @cached_property
    def vectors(self) -> Tensor:
        """Rewards of every answer, float [prompts, V, 2]."""
        tables = [_BASE.roll(prompt % len(_BASE), 0) for prompt in range(self.prompts)]
        return torch.stack(
            [table.flip(1) if prompt % 2 else table for prompt, table in enumerate(tables)]
        )

    def draw(self, seeds: Sequence[int], step: int, count: int) -> Tensor:
        """Draw `count` prompts per seed, int64 [S, count]; `step` selects the random stream."""
        return draws.integers(seeds, "data", (step,), (count,), self.prompts)

    def rewards(self, prompts: Tensor, actions: Tensor) -> Tensor:
        """Reward vectors [S, N, K, M, 2] of actions [S, N, K, M, 1] to prompts [S, N]."""
        return self.vectors[prompts[:, :, None, None], actions[..., 0]]
