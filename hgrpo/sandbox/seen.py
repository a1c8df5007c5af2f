"""What a rule sees of a batch, and what it returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from hgrpo.sandbox.policies import taken
from hgrpo.sandbox.rollout import Rollout, seed_mean


@dataclass(frozen=True)
class Seen:
    """A batch under the current weights.

    `table` [S, N, K, M, T, V] holds log-probs of every action, with their gradient. `baseline` is
    what a rule subtracts from rewards, in a shape that broadcasts to [S, N, K, M, T], without a
    gradient. `scored` [T] is 1 where the reward reads the position. `oracle` [S, N, 1, 1, T, V] is
    the table along the right answer, for rules that declare it.
    """

    rollout: Rollout
    table: Tensor
    baseline: Tensor
    scored: Tensor
    oracle: Tensor | None = None

    @cached_property
    def logprobs(self) -> Tensor:
        """Log-probs of the actions, [S, N, K, M, T]."""
        return taken(self.table, self.rollout.actions)

    @cached_property
    def advantages(self) -> Tensor:
        """Reward minus baseline, for every token, [S, N, K, M, T]."""
        return self.over_tokens(self.rollout.rewards) - self.baseline

    @cached_property
    def correct(self) -> Tensor:
        """1 for tokens that are the label's, [S, N, K, M, T]."""
        labels = self.rollout.labels[:, :, None, None]
        return (self.rollout.actions == labels).float()

    @cached_property
    def label_losses(self) -> Tensor:
        """-log p of the right token after the sampled prefix, [S, N, K, M, T]."""
        labels = self.rollout.labels[:, :, None, None].expand_as(self.rollout.actions)
        return -taken(self.table, labels)

    @cached_property
    def scores(self) -> Tensor:
        """Log-prob of each rollout, [S, N, K]."""
        return (self.logprobs * self.rollout.mask).sum((-1, -2))

    @cached_property
    def old_scores(self) -> Tensor:
        """Log-prob of each rollout when it was sampled, [S, N, K]."""
        return (self.rollout.behaviour * self.rollout.mask).sum((-1, -2))

    def over_tokens(self, values: Tensor) -> Tensor:
        """Values of rollouts [S, N, K], for each of their tokens [S, N, K, M, T]."""
        return values[..., None, None].expand_as(self.rollout.actions)

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the tokens that take part, [S]."""
        return seed_mean(values, self.rollout.taken)

    def group_mean(self, values: Tensor) -> Tensor:
        """Mean of values [S, N] over the groups that take part, [S]."""
        return seed_mean(values, self.rollout.keep.amax(-1))


@dataclass(frozen=True)
class Term:
    """A rule's loss for each seed, [S], and what the log says of it, by column, [S] each."""

    loss: Tensor
    metrics: Mapping[str, Tensor] = field(default_factory=dict)
