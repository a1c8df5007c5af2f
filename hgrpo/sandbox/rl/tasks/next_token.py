"""A language model as the net of a bandit: its action is the token that follows a context."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class NextToken:
    """The first weights [1, P] of a model, and its logits [S, R, V] of contexts int64 [S, R, C].

    `score` takes weights [S, P] and contexts.
    """

    first: Tensor
    vocabulary: int
    score: Callable[[Tensor, Tensor], Tensor]

    def init(self, seeds: Sequence[int], name: str = "policy") -> Tensor:
        """The first weights, once for each seed."""
        return self.first.repeat(len(seeds), 1)

    def logits(self, weights: Tensor, contexts: Tensor) -> Tensor:
        """[S, R, V]."""
        return self.score(weights, contexts)
