"""What a policy can do: the greedy and the sampled policy, on every input where they can be listed.

An evaluation draws only from its own streams, so it changes nothing in training.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hgrpo.sandbox import draws
from hgrpo.sandbox.policies import Policy, Sampled
from hgrpo.sandbox.rl.exact import all_outputs
from hgrpo.sandbox.rl.settings import MOST_OUTPUTS
from hgrpo.sandbox.rl.tasks.task import Task
from hgrpo.sandbox.tasks.questions import Questions

# Inputs that are evaluated in one pass; bounds memory.
_AT_ONCE = 1024
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
        return outputs <= MOST_OUTPUTS and outputs * inputs <= _MOST_PAIRS

    @torch.no_grad()
    def examine(self, weights: Tensor, step: int) -> dict[str, Tensor]:
        """Columns of the log, [S] each.

        `entropy` is the mean entropy of a token in nats along the greedy output, `policy_entropy`
        along sampled outputs, `sequence_entropy` that of a whole output. `sep_probability` is the
        mean probability of the separator along sampled outputs, and `kl_from_init` the KL of an
        output to the first policy, in nats.
        """
        asked = self.questions(step)
        parts = []
        for begin in range(0, asked.labels.shape[1], _AT_ONCE):
            some = Questions(*(each[:, begin : begin + _AT_ONCE] for each in asked))
            found = self._greedy(weights, some) | self._sampled(weights, some, (step, begin))
            parts.append((some.labels.shape[1], found))
        total = sum(count for count, _ in parts)
        return {
            name: sum(count * found[name] for count, found in parts) / total for name in parts[0][1]
        }

    def _greedy(self, weights: Tensor, asked: Questions) -> dict[str, Tensor]:
        done = self.policy.greedy(weights, asked.inputs)
        errors = self.task.errors(done.actions, asked.labels[:, :, None, None])
        return _means(errors) | {
            "greedy_reward": _mean(self.task.rewards(done.actions, asked.labels[:, :, None, None])),
            "entropy": _mean(_entropies(done.table)),
            **self.task.more(done, asked),
        }

    def _sampled(
        self, weights: Tensor, asked: Questions, name: tuple[int, ...]
    ) -> dict[str, Tensor]:
        """The sampled policy, over all outputs or over one drawn output for each input."""
        if self.lists_outputs:
            return self._listed(weights, asked)
        shape = (asked.labels.shape[1], 1, 1, self.task.horizon)
        uniform = draws.uniform(self.seeds, "evaluation", name, shape)
        done = self.policy.sample(weights, asked.inputs, uniform)
        return self._describe(asked, done, torch.ones_like(done.logprobs[..., 0, 0]))

    def _listed(self, weights: Tensor, asked: Questions) -> dict[str, Tensor]:
        outputs = all_outputs(self.task)
        seeds, count = asked.labels.shape[:2]
        actions = outputs[None, None, :, None].expand(seeds, count, -1, -1, -1)
        table = self.policy.table(weights, asked.inputs, actions)
        done = Sampled(actions, table)
        return self._describe(asked, done, done.logprobs.sum((-1, -2)).exp())

    def _describe(self, asked: Questions, done: Sampled, chances: Tensor) -> dict[str, Tensor]:
        """Means over outputs [S, N, K] that weigh `chances`, which add up to 1 over K."""
        labels = asked.labels[:, :, None, None]
        errors = self.task.errors(done.actions, labels)
        before = self.policy.table(self.first, asked.inputs, done.actions)
        entropies = _entropies(done.table)
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


def _entropies(table: Tensor) -> Tensor:
    """Entropy in nats of each row of log-probs [..., V]."""
    return -(table.exp() * table).sum(-1)


def _mean(values: Tensor) -> Tensor:
    return values.flatten(1).mean(1)


def _means(columns: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: _mean(values) for name, values in columns.items()}
