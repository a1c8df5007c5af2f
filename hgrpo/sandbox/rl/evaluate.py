"""What a policy can do: the greedy and the sampled policy, on every input where they can be listed.

An evaluation draws only from its own streams, so it changes nothing in training.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from hgrpo.formulas.batch import Questions, seed_mean
from hgrpo.formulas.full_kl import entropy
from hgrpo.sandbox import draws
from hgrpo.sandbox.policies import Inputs, Policy, Sampled
from hgrpo.sandbox.rl.tasks.task import Task, can_list, output_count

# Outputs of all seeds that are computed in one pass: what fits into a processor's cache is faster.
# Listed ones share most of their tokens.
_DRAWN_AT_ONCE = 1280
_LISTED_AT_ONCE = 10_000
# Up to so many pairs of input and output are listed, and expectations are exact.
_MOST_PAIRS = 5_000
_REFERENCE_INPUTS = 1000


@dataclass(frozen=True)
class Examiner:
    """Evaluates the policies of all seeds; `first` are their first weights [S, P]."""

    task: Task
    policy: Policy
    seeds: Sequence[int]
    first: Tensor
    # Draws inputs anew for every evaluation, as the original does.
    draws_inputs: bool = False

    def questions(self, step: int) -> Questions:
        """Inputs of all seeds, with an axis of seeds that may be broadcast."""
        if self._redraws:
            return self.task.draw(self.seeds, ("evaluation", step), _REFERENCE_INPUTS)
        asked, _ = self.task.examination()
        return Questions(*(each.expand(len(self.seeds), *each.shape[1:]) for each in asked))

    @property
    def _redraws(self) -> bool:
        """Whether each evaluation draws new inputs. A bandit has a fixed set of them."""
        return self.draws_inputs and self.task.separator is not None

    @cached_property
    def lists_outputs(self) -> bool:
        """Whether expectations over the sampled policy are exact."""
        inputs = self.questions(0).labels.shape[1]
        return can_list(self.task) and output_count(self.task) * inputs <= _MOST_PAIRS

    @torch.no_grad()
    def examine(self, weights: Tensor, step: int) -> dict[str, Tensor]:
        """Columns of the log, [S] each.

        `entropy` is the mean entropy of a token in nats along the greedy output, `policy_entropy`
        along sampled outputs, `sequence_entropy` that of a whole output. `sep_probability` is the
        mean probability of the separator along sampled outputs, and `kl_from_init` the KL of an
        output to the first policy, in nats.
        """
        asked = self.questions(step)
        labels = asked.labels[:, :, None, None]
        greedy, done = self._act(weights, asked, step)
        errors = self.task.errors(greedy.actions, labels)
        return {
            **{name: seed_mean(values) for name, values in errors.items()},
            "greedy_reward": seed_mean(self.task.rewards(greedy.actions, labels)),
            "entropy": seed_mean(entropy(greedy.table)),
            **self.task.more(greedy, asked),
            **self._sampled(asked, done),
        }

    def _act(self, weights: Tensor, asked: Questions, step: int) -> tuple[Sampled, Sampled]:
        """What the greedy and the sampled policy do.

        The sampled one gives all outputs if they are listed, else one drawn output for each input.
        """
        policy, listed = self.policy, self.lists_outputs
        shape = (asked.labels.shape[1], 1, 1, self.task.horizon)
        uniform = [] if listed else [draws.uniform(self.seeds, "evaluation", (step,), shape)]

        def act(inputs: Tensor, *uniform: Tensor) -> tuple[Tensor, ...]:
            read = policy.read(weights, inputs)
            sampled = (
                policy.listed(weights, read) if listed else policy.sample(weights, read, *uniform)
            )
            return *policy.greedy(weights, read), *sampled

        found = [act(*some) for some in self._parts(asked.inputs, *uniform)]
        likeliest, greedy_table, actions, table = (
            torch.cat(each, 1) for each in zip(*found, strict=True)
        )
        return Sampled(likeliest, greedy_table), Sampled(actions, table)

    def _parts(self, *given: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Split tensors [S, N, ...] into parts of so many inputs as one pass computes."""
        size = _DRAWN_AT_ONCE // len(self.seeds)
        if self.lists_outputs:
            size = _LISTED_AT_ONCE // (len(self.seeds) * output_count(self.task))
        return zip(*(each.split(max(1, size), 1) for each in given), strict=True)

    def _list_first(self, inputs: Tensor) -> Tensor:
        """Score all outputs by the first weights, [S, N, K, M, T, V]."""
        tables = [self.policy.listed(self.first, some).table for (some,) in self._parts(inputs)]
        return torch.cat(tables, 1)

    def _read_first(self, inputs: Tensor) -> list[Inputs]:
        """Let the first policy read the inputs, part by part."""
        return [self.policy.read(self.first, some) for (some,) in self._parts(inputs)]

    @cached_property
    def _first_listed(self) -> Tensor:
        """`_list_first` of a fixed set of inputs."""
        return self._list_first(self.questions(0).inputs)

    @cached_property
    def _first_read(self) -> list[Inputs]:
        """`_read_first` of a fixed set of inputs."""
        return self._read_first(self.questions(0).inputs)

    def _before(self, asked: Questions, done: Sampled) -> Tensor:
        """Log-probs under the first weights along what the sampled policy does."""
        if self.lists_outputs:
            return self._list_first(asked.inputs) if self._redraws else self._first_listed
        reads = self._read_first(asked.inputs) if self._redraws else self._first_read
        parts = zip(reads, self._parts(done.actions), strict=True)
        return torch.cat([self.policy.table(self.first, read, some) for read, (some,) in parts], 1)

    def _sampled(self, asked: Questions, done: Sampled) -> dict[str, Tensor]:
        """Columns of the sampled policy; outputs that are listed weigh their probability."""
        labels = asked.labels[:, :, None, None]
        errors = self.task.errors(done.actions, labels)
        if self.lists_outputs:
            chances = done.logprobs.sum((-1, -2)).exp()
        else:
            chances = torch.ones_like(done.logprobs[..., 0, 0])
        before = self._before(asked, done)
        entropies = entropy(done.table)
        divergence = (done.table.exp() * (done.table - before)).sum(-1)

        def mean(values: Tensor) -> Tensor:
            return seed_mean((values.flatten(3).mean(-1) * chances).sum(-1))

        columns = {
            "sampled_reward": mean(self.task.rewards(done.actions, labels)),
            "sampled_error": mean(errors["test_error"]),
            "policy_entropy": mean(entropies),
            "sequence_entropy": mean(entropies) * self.task.horizon,
            "kl_from_init": mean(divergence) * self.task.horizon,
        }
        if self.task.separator is not None:
            columns["sep_probability"] = mean(done.table[..., self.task.separator].exp())
        return columns
