"""Data structures of update rules: a batch of rollouts, the model's outputs on it, and a loss."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import NamedTuple

from hgrpo.formulas.tensors import Tensor, torch


@dataclass(frozen=True)
class Candidates:
    """C candidate tokens for every position of a batch, [S, N, K, M, T, C].

    Candidate 0 is the token that the rollout contains.
    """

    actions: Tensor
    # Log-probs at sampling time.
    behaviour: Tensor
    rewards: Tensor

    def columns(self) -> dict[str, Tensor]:
        """Metrics of the rewards, [S, N, K, M, T] each."""
        return {
            "candidate_reward": self.rewards.mean(-1),
            "behavior_token_reward": self.rewards[..., 0],
        }


@dataclass(frozen=True)
class Rollout:
    """A batch with the axes S seeds, N groups, K rollouts, M slots or segments, T tokens.

    A group consists of K rollouts of one input; in batches without groups, K is 1. A token
    (or a rollout) is excluded by a 0 in `mask` (or `keep`), so all tensors keep their shapes. The
    first axis of every tensor is the axis of seeds.
    """

    # Maps a view (a form in which a policy gets the task) to prompts or features [S, N, ...].
    inputs: Mapping[str, Tensor]
    # int64 [S, N, K, M, T]
    actions: Tensor
    # Log-probs of the actions at sampling time, in nats, [S, N, K, M, T].
    behaviour: Tensor
    # Rewards [S, N, K]. `rewards` includes reward noise, and `clean` does not.
    rewards: Tensor
    clean: Tensor
    # 1 for valid tokens, 0 for padding, [S, N, K, M, T].
    mask: Tensor
    # 1 for rollouts included in the update, [S, N, K].
    keep: Tensor
    # Training steps since the batch was sampled, int64 [S].
    age: Tensor
    # The correct actions, int64 [S, N, T].
    labels: Tensor | None = None
    # Sum of the squared probabilities of all actions at sampling time, [S, N, K, M, T].
    collision: Tensor | None = None
    # E[R | input] of the behaviour policy, [S, N].
    expected: Tensor | None = None
    candidates: Candidates | None = None
    # Maps names to tensors that only some experiments use, such as a teacher's log-probs.
    extras: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def taken(self) -> Tensor:
        """1 for tokens included in the update, [S, N, K, M, T]."""
        return self.mask * self.keep[..., None, None]

    @property
    def group_size(self) -> int:
        """Number of rollouts per group, K."""
        return self.actions.shape[2]

    def restricted(self, keep: Tensor) -> "Rollout":
        """Return a copy that also excludes rollouts with a 0 in the argument `keep` [S, N, K]."""
        return replace(self, keep=self.keep * keep)


def choose(batches: Sequence[Rollout], which: Sequence[int], age: Tensor) -> Rollout:
    """Combine batches: seed s is taken from `batches[which[s]]`, and the ages are set to `age`."""
    if len(set(which)) == 1:
        return replace(batches[which[0]], age=age)

    def pick(parts: list[Tensor]) -> Tensor:
        return torch.stack([parts[index][seed] for seed, index in enumerate(which)])

    return replace(_combined(batches, pick), age=age)


def _combined(objects: Sequence, combine: Callable[[list[Tensor]], Tensor]):
    """Merge objects field by field; `combine` merges corresponding tensors."""
    first = objects[0]
    if isinstance(first, torch.Tensor):
        return combine(list(objects))
    if isinstance(first, Mapping):
        return {name: _combined([each[name] for each in objects], combine) for name in first}
    if first is None:
        return None
    changes = {
        each.name: _combined([getattr(one, each.name) for one in objects], combine)
        for each in fields(first)
    }
    return replace(first, **changes)


def taken(table: Tensor, actions: Tensor) -> Tensor:
    """Gather the log-probs of `actions` [...] from a table [..., V]."""
    return table.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def seed_mean(values: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean of `values` [S, ...] over all axes except the first, optionally weighted, [S].

    The mean and its gradient are 0 for a seed with total weight 0.
    """
    if weight is None:
        return values.flatten(1).mean(1)
    total = (values * weight).flatten(1).sum(1)
    return total / weight.flatten(1).sum(1).clamp(min=1.0)


class Questions(NamedTuple):
    """Inputs [S, N, ...] of the policy, and the correct actions, int64 [S, N, T]."""

    inputs: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Seen:
    """A batch and the log-probs of the current policy on it.

    `table` [S, N, K, M, T, V] contains the log-probs of all actions, with gradient. `baseline` is
    subtracted from rewards; it has no gradient and is broadcastable to [S, N, K, M, T]. `scored`
    [T] is 1 for positions that affect the reward. `oracle` [S, N, 1, 1, T, V] contains the
    log-probs of all actions after each prefix of the correct answer, if the rule uses them.
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
        """1 for tokens equal to the label, [S, N, K, M, T]."""
        labels = self.rollout.labels[:, :, None, None]
        return (self.rollout.actions == labels).float()

    @cached_property
    def label_losses(self) -> Tensor:
        """-log p of the correct token, given the sampled prefix, [S, N, K, M, T]."""
        labels = self.rollout.labels[:, :, None, None].expand_as(self.rollout.actions)
        return -taken(self.table, labels)

    @cached_property
    def scores(self) -> Tensor:
        """Log-prob of each rollout, [S, N, K]."""
        return (self.logprobs * self.rollout.mask).sum((-1, -2))

    @cached_property
    def old_scores(self) -> Tensor:
        """Log-prob of each rollout at sampling time, [S, N, K]."""
        return (self.rollout.behaviour * self.rollout.mask).sum((-1, -2))

    def over_tokens(self, values: Tensor) -> Tensor:
        """Repeat the value of each rollout [S, N, K] for all its tokens, [S, N, K, M, T]."""
        return values[..., None, None].expand_as(self.rollout.actions)

    def per_seed(self, values: Tensor) -> Tensor:
        """Repeat the value of each seed [S] for all its tokens, [S, N, K, M, T]."""
        shape = (-1, *(1,) * (self.logprobs.dim() - 1))
        return torch.broadcast_to(values.view(shape), self.logprobs.shape)

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the tokens included in the update, [S]."""
        return seed_mean(values, self.rollout.taken)

    def means(self, columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """`mean` of each column."""
        return {name: self.mean(values) for name, values in columns.items()}

    def group_mean(self, values: Tensor) -> Tensor:
        """Mean of values [S, N] over the groups included in the update, [S]."""
        return seed_mean(values, self.rollout.keep.amax(-1))


@dataclass(frozen=True)
class Term:
    """The loss of an update rule, and metrics to log, [S] each (one entry per seed)."""

    loss: Tensor
    metrics: Mapping[str, Tensor] = field(default_factory=dict)
