"""What a policy can do: the greedy and the sampled policy, on every input where they can be listed.

An evaluation draws only from its own streams, so it changes nothing in training.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from hgrpo.learning.objectives.full_kl import entropy
from hgrpo.sandbox import draws
from hgrpo.sandbox.policies import Inputs, Policy, Sampled
from hgrpo.sandbox.rl.exact import all_outputs, can_list
from hgrpo.sandbox.rl.tasks.task import Task
from hgrpo.sandbox.tasks.questions import Questions

# Outputs of all seeds that are computed in one pass: what fits into a processor's cache is faster.
_AT_ONCE = 1280
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
        if self.draws_inputs and self.task.separator is not None:
            return self.task.draw(self.seeds, ("evaluation", step), _REFERENCE_INPUTS)
        asked, _ = self.task.examination()
        return Questions(*(each.expand(len(self.seeds), *each.shape[1:]) for each in asked))

    @property
    def lists_outputs(self) -> bool:
        """Whether expectations over the sampled policy are exact."""
        outputs = self.task.actions**self.task.horizon
        inputs = self.task.examination()[0].labels.shape[1]
        return can_list(self.task) and outputs * inputs <= _MOST_PAIRS

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
        return {
            **_means(self.task.errors(greedy.actions, labels)),
            "greedy_reward": _mean(self.task.rewards(greedy.actions, labels)),
            "entropy": _mean(entropy(greedy.table)),
            **self.task.more(greedy, asked),
            **self._sampled(asked, done),
        }

    def _act(self, weights: Tensor, asked: Questions, step: int) -> tuple[Sampled, Sampled]:
        """What the greedy and the sampled policy do.

        The sampled one gives all outputs if they are listed, else one drawn output for each input.
        """
        policy, listed = self.policy, self.lists_outputs
        shape = (asked.labels.shape[1], 1, 1, self.task.horizon)
        given = (
            self._every_output(asked)
            if listed
            else draws.uniform(self.seeds, "evaluation", (step,), shape)
        )

        def act(inputs: Tensor, given: Tensor) -> tuple[Tensor, ...]:
            read = policy.read(weights, inputs)
            sampled = (
                Sampled(given, policy.table(weights, read, given))
                if listed
                else policy.sample(weights, read, given)
            )
            return *policy.greedy(weights, read), *sampled

        found = self._in_parts(act, asked.inputs, given, outputs=given.shape[2])
        return Sampled(*found[:2]), Sampled(*found[2:])

    def _in_parts(
        self, act: Callable[..., tuple[Tensor, ...]], *given: Tensor, outputs: int
    ) -> tuple[Tensor, ...]:
        """What `act` makes of tensors [S, N, ...], some inputs at a time, each with `outputs`."""
        size = self._at_once(outputs)
        parts = [act(*some) for some in zip(*(each.split(size, 1) for each in given), strict=True)]
        return tuple(torch.cat(each, 1) for each in zip(*parts, strict=True))

    def _at_once(self, outputs: int) -> int:
        """How many inputs are computed in one pass, each with so many outputs."""
        return max(1, _AT_ONCE // (len(self.seeds) * outputs))

    def _every_output(self, asked: Questions) -> Tensor:
        """All outputs for every input, int64 [S, N, O, 1, T]."""
        outputs = all_outputs(self.task)[None, None, :, None]
        return outputs.expand(*asked.labels.shape[:2], -1, -1, -1)

    @cached_property
    def _first_listed(self) -> Tensor:
        """Log-probs of all outputs under the first weights, for inputs that are always the same."""
        asked = self.questions(0)
        return self._before(asked.inputs, self._every_output(asked))

    @cached_property
    def _first_read(self) -> list[Inputs]:
        """Inputs that are always the same, in parts, as the first policy reads them."""
        parts = self.questions(0).inputs.split(self._at_once(1), 1)
        return [self.policy.read(self.first, part) for part in parts]

    def _along(self, actions: Tensor) -> Tensor:
        """Log-probs under the first weights along one output of each input that is always there."""
        parts = zip(self._first_read, actions.split(self._at_once(1), 1), strict=True)
        return torch.cat([self.policy.table(self.first, read, some) for read, some in parts], 1)

    def _before(self, inputs: Tensor, actions: Tensor) -> Tensor:
        """Log-probs under the first weights along actions [S, N, K, 1, T]."""
        (table,) = self._in_parts(
            lambda some, taken: (self.policy.table(self.first, some, taken),),
            *(inputs, actions),
            outputs=actions.shape[2],
        )
        return table

    def _sampled(self, asked: Questions, done: Sampled) -> dict[str, Tensor]:
        """Columns of the sampled policy; outputs that are listed weigh their probability."""
        labels = asked.labels[:, :, None, None]
        errors = self.task.errors(done.actions, labels)
        if self.lists_outputs:
            chances = done.logprobs.sum((-1, -2)).exp()
        else:
            chances = torch.ones_like(done.logprobs[..., 0, 0])
        if self.draws_inputs:
            before = self._before(asked.inputs, done.actions)
        elif self.lists_outputs:
            before = self._first_listed
        else:
            before = self._along(done.actions)
        entropies = entropy(done.table)
        divergence = (done.table.exp() * (done.table - before)).sum(-1)

        def mean(values: Tensor) -> Tensor:
            return _mean((values.flatten(3).mean(-1) * chances).sum(-1))

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


def _mean(values: Tensor) -> Tensor:
    return values.flatten(1).mean(1)


def _means(columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: _mean(values) for name, values in columns.items()}
