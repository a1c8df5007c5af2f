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
from hgrpo.sandbox.policies import Policy, Sampled
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
        greedy = self._in_parts(lambda inputs: self.policy.greedy(weights, inputs), asked.inputs)
        return {
            **_means(self.task.errors(greedy.actions, labels)),
            "greedy_reward": _mean(self.task.rewards(greedy.actions, labels)),
            "entropy": _mean(entropy(greedy.table)),
            **self.task.more(greedy, asked),
            **self._sampled(weights, asked, step),
        }

    def _in_parts(self, act: Callable[..., Sampled], *given: Tensor, outputs: int = 1) -> Sampled:
        """What `act` makes of tensors [S, N, ...], some inputs at a time, each with `outputs`."""
        size = max(1, _AT_ONCE // (len(self.seeds) * outputs))
        parts = [act(*some) for some in zip(*(each.split(size, 1) for each in given), strict=True)]
        return Sampled(*(torch.cat(each, 1) for each in zip(*parts, strict=True)))

    def _sampled(self, weights: Tensor, asked: Questions, step: int) -> dict[str, Tensor]:
        """The sampled policy, over all outputs or over one drawn output for each input."""
        if self.lists_outputs:
            done = self._along(weights, asked, self._every_output(asked))
            before = self._first_listed if not self.draws_inputs else None
            return self._describe(asked, done, done.logprobs.sum((-1, -2)).exp(), before)
        shape = (asked.labels.shape[1], 1, 1, self.task.horizon)
        uniform = draws.uniform(self.seeds, "evaluation", (step,), shape)
        done = self._in_parts(
            lambda inputs, some: self.policy.sample(weights, inputs, some), asked.inputs, uniform
        )
        return self._describe(asked, done, torch.ones_like(done.logprobs[..., 0, 0]))

    def _every_output(self, asked: Questions) -> Tensor:
        """All outputs for every input, int64 [S, N, O, 1, T]."""
        outputs = all_outputs(self.task)[None, None, :, None]
        return outputs.expand(*asked.labels.shape[:2], -1, -1, -1)

    @cached_property
    def _first_listed(self) -> Tensor:
        """Log-probs of all outputs under the first weights, for inputs that are always the same."""
        asked = self.questions(0)
        return self._along(self.first, asked, self._every_output(asked)).table

    def _along(self, weights: Tensor, asked: Questions, actions: Tensor) -> Sampled:
        """Log-probs along actions [S, N, K, 1, T]."""
        return self._in_parts(
            lambda inputs, some: Sampled(some, self.policy.table(weights, inputs, some)),
            *(asked.inputs, actions),
            outputs=actions.shape[2],
        )

    def _describe(
        self, asked: Questions, done: Sampled, chances: Tensor, before: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Means over outputs [S, N, K] that weigh `chances`, which add up to 1 over K.

        `before` are the log-probs of the first weights, if they are known.
        """
        labels = asked.labels[:, :, None, None]
        errors = self.task.errors(done.actions, labels)
        if before is None:
            before = self._along(self.first, asked, done.actions).table
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
