"""Evaluates the greedy and the sampled policy, on all inputs if there are few enough.

Evaluations use their own random streams, so they do not affect training.
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

# Maximum number of outputs per forward pass, summed over seeds, so that a pass fits into the CPU
# cache. The maximum is higher for enumerated outputs, because they share most of their tokens.
_DRAWN_AT_ONCE = 1280
_LISTED_AT_ONCE = 10_000
# Maximum number of (input, output) pairs for exact expectations.
_MOST_PAIRS = 5_000
_REFERENCE_INPUTS = 1000


@dataclass(frozen=True)
class Examiner:
    """Evaluates the policies of all seeds; `first` contains the initial weights [S, P]."""

    task: Task
    policy: Policy
    seeds: Sequence[int]
    first: Tensor
    # Whether to draw new inputs for every evaluation, as the original does.
    draws_inputs: bool = False

    def questions(self, step: int) -> Questions:
        """Inputs of the evaluation, with a seed axis of size 1 if all seeds use the same inputs."""
        if self._redraws:
            return self.task.draw(self.seeds, ("evaluation", step), _REFERENCE_INPUTS)
        questions, _ = self.task.examination()
        return Questions(*(each.expand(len(self.seeds), *each.shape[1:]) for each in questions))

    @property
    def _redraws(self) -> bool:
        """Whether each evaluation draws new inputs, which is not possible for bandits."""
        return self.draws_inputs and self.task.separator is not None

    @cached_property
    def lists_outputs(self) -> bool:
        """Whether all outputs are enumerated, so that expectations over the policy are exact."""
        inputs = self.questions(0).labels.shape[1]
        return can_list(self.task) and output_count(self.task) * inputs <= _MOST_PAIRS

    @torch.no_grad()
    def examine(self, weights: Tensor, step: int) -> dict[str, Tensor]:
        """Columns of the log, [S] each.

        `entropy` is the mean entropy per token of greedy outputs, and `policy_entropy` is that of
        sampled outputs. `sequence_entropy` is the entropy of a whole output. `sep_probability` is
        the mean probability of the separator along sampled outputs. `kl_from_init` is the KL
        divergence of whole outputs from the initial policy. Entropies and the KL are in nats.
        """
        questions = self.questions(step)
        labels = questions.labels[:, :, None, None]
        greedy, done = self._act(weights, questions, step)
        errors = self.task.errors(greedy.actions, labels)
        return {
            **{name: seed_mean(values) for name, values in errors.items()},
            "greedy_reward": seed_mean(self.task.rewards(greedy.actions, labels)),
            "entropy": seed_mean(entropy(greedy.table)),
            **self.task.more(greedy, questions),
            **self._sampled(questions, done),
        }

    def _act(self, weights: Tensor, questions: Questions, step: int) -> tuple[Sampled, Sampled]:
        """The greedy outputs, and all possible outputs or one sampled output per input."""
        policy, listed = self.policy, self.lists_outputs
        shape = (questions.labels.shape[1], 1, 1, self.task.horizon)
        uniform = [] if listed else [draws.uniform(self.seeds, "evaluation", (step,), shape)]

        def act(inputs: Tensor, *uniform: Tensor) -> tuple[Tensor, ...]:
            read = policy.read(weights, inputs)
            sampled = (
                policy.listed(weights, read) if listed else policy.sample(weights, read, *uniform)
            )
            return *policy.greedy(weights, read), *sampled

        parts = [act(*some) for some in self._parts(questions.inputs, *uniform)]
        likeliest, greedy_table, actions, table = (
            torch.cat(each, 1) for each in zip(*parts, strict=True)
        )
        return Sampled(likeliest, greedy_table), Sampled(actions, table)

    def _parts(self, *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
        size = _DRAWN_AT_ONCE // len(self.seeds)
        if self.lists_outputs:
            size = _LISTED_AT_ONCE // (len(self.seeds) * output_count(self.task))
        return zip(*(each.split(max(1, size), 1) for each in tensors), strict=True)

    @cached_property
    def _first(self) -> list[Inputs]:
        return self._of_first(self.questions(0).inputs)

    def _of_first(self, inputs: Tensor) -> list[Inputs]:
        """Log-probs of the initial policy if outputs are enumerated, else the result of `read`."""
        parts = self._parts(inputs)
        if self.lists_outputs:
            return [torch.cat([self.policy.listed(self.first, some).table for (some,) in parts], 1)]
        return [self.policy.read(self.first, some) for (some,) in parts]

    def _before(self, questions: Questions, done: Sampled) -> Tensor:
        """Log-probs of sampled or enumerated outputs under the initial weights."""
        first = self._of_first(questions.inputs) if self._redraws else self._first
        if self.lists_outputs:
            return first[0]
        parts = zip(first, self._parts(done.actions), strict=True)
        return torch.cat([self.policy.table(self.first, read, some) for read, (some,) in parts], 1)

    def _sampled(self, questions: Questions, done: Sampled) -> dict[str, Tensor]:
        labels = questions.labels[:, :, None, None]
        errors = self.task.errors(done.actions, labels)
        if self.lists_outputs:
            chances = done.logprobs.sum((-1, -2)).exp()
        else:
            chances = torch.ones_like(done.logprobs[..., 0, 0])
        before = self._before(questions, done)
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
