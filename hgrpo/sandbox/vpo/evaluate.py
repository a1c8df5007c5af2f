"""Evaluates a policy's sets of answers on every prompt, exactly or by sampling as in the original.

Evaluations use their own random streams, so they do not affect training.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from hgrpo.formulas.batch import seed_mean
from hgrpo.formulas.full_kl import entropy
from hgrpo.formulas.set_score import best_scalar, exact_set_score
from hgrpo.sandbox import draws
from hgrpo.sandbox.vpo.pareto import GOLD, ParetoFront
from hgrpo.sandbox.vpo.policy import SetPolicy
from hgrpo.sandbox.vpo.set_metrics import (
    coverage,
    distances,
    hypervolume,
    subset_chances,
    subset_vectors,
    worst_regret,
)

# Values of k in the metrics `*_at_k`, which are computed for k answers.
_POOLS = (1, 3, 9)
_REFERENCE_SETS = 12


@dataclass(frozen=True)
class Examiner:
    """Evaluates the policies of all seeds."""

    task: ParetoFront
    policy: SetPolicy
    seeds: Sequence[int]
    # Whether the original sandbox's columns are estimated from samples instead of computed exactly.
    samples: bool = False

    @torch.no_grad()
    def examine(self, weights: Tensor, step: int) -> dict[str, Tensor]:
        """Columns of the log, [S] each; all values are means over prompts.

        `set_score` is the reward of the best answer in a set, averaged over weights of the two
        rewards. Metrics `*_at_k` are computed for k answers, which may come from several sets.
        `best_at_k` is the best reward among them under the gold weights. `hypervolume_at_k`,
        `worst_regret_at_k` and `coverage_at_k` are defined in `set_metrics`. `pool_diversity_l1` is
        the mean distance between two answers of the same set, and `across_diversity_l1` is the mean
        distance between answers of different sets. `entropy` is averaged over slots, in nats.
        """
        table = self.policy.slot_table(weights)
        chances = table.double().exp()
        prompts = torch.arange(self.task.prompts).expand(len(weights), -1)
        greedy = self.policy.greedy(weights, prompts)
        best = self.task.rewards(prompts, greedy.actions)
        columns = self._sampled(table, step) if self.samples else self._original(chances)
        columns |= {
            "set_score": self.expected_set_score(weights),
            "greedy_set_score": seed_mean(exact_set_score(best)),
            "greedy_best": seed_mean(best_scalar(best, GOLD)),
            "across_diversity_l1": seed_mean(self._apart(chances)),
            "entropy": seed_mean(entropy(table.double())),
        }
        for name, worth in self._worths.items():
            for size in _POOLS:
                expected = self._expected(chances, self._counts(size), worth)
                columns[f"{name}_at_{size}"] = seed_mean(expected)
        return {name: column.float() for name, column in columns.items()}

    def expected_set_score(self, weights: Tensor) -> Tensor:
        """Expected set score, averaged over prompts, [S]; exact and differentiable."""
        chances = self.policy.slot_table(weights).double().exp()
        counts = self._counts(self.policy.slots)
        return seed_mean(self._expected(chances, counts, self._worths["set_score"]))

    @cached_property
    def _worths(self) -> dict[str, Tensor]:
        """Map each metric to its values for all subsets of answers, float64 [prompts, 2^V]."""
        available = self.task.vectors.double().unsqueeze(1)
        return {
            "set_score": self._of_subsets(exact_set_score),
            "hypervolume": self._of_subsets(hypervolume),
            "worst_regret": self._of_subsets(lambda sets: worst_regret(sets, available)),
            "coverage": self._of_subsets(lambda sets: coverage(sets, available)),
        }

    @cached_property
    def _gold(self) -> Tensor:
        return self._of_subsets(lambda sets: best_scalar(sets, GOLD.double()))

    def _of_subsets(self, worth: Callable[[Tensor], Tensor]) -> Tensor:
        worths = worth(subset_vectors(self.task.vectors.double())).double()
        return torch.nn.functional.pad(worths, (1, 0))

    def _counts(self, answers: int) -> Tensor:
        """How many of the first `answers` answers come from each slot, int64 [M]."""
        whole, rest = divmod(answers, self.policy.slots)
        return whole + (torch.arange(self.policy.slots) < rest).long()

    def _expected(self, chances: Tensor, counts: Tensor, worth: Tensor) -> Tensor:
        return (subset_chances(chances, counts) * worth).sum(-1)

    def _original(self, chances: Tensor) -> dict[str, Tensor]:
        scores = self.task.vectors.double() @ GOLD.double()
        return {
            "mean_scalar_reward": seed_mean((chances * scores.unsqueeze(1)).sum(-1)),
            **{
                f"best_at_{size}": seed_mean(
                    self._expected(chances, self._counts(size), self._gold)
                )
                for size in _POOLS
            },
            "pool_diversity_l1": self._within(chances),
        }

    def _apart(self, chances: Tensor) -> Tensor:
        """Mean distance between independent answers of each pair of slots, [S, prompts, M, M]."""
        apart = distances(self.task.vectors.double())
        return torch.einsum("spma,pab,spnb->spmn", chances, apart, chances)

    def _within(self, chances: Tensor) -> Tensor:
        slots = self.policy.slots
        if slots == 1:
            return torch.zeros(len(chances))
        one, other = torch.triu_indices(slots, slots, offset=1)
        return seed_mean(self._apart(chances)[..., one, other])

    def _sampled(self, table: Tensor, step: int) -> dict[str, Tensor]:
        seeds, prompts, slots, _ = table.shape
        shape = (prompts, _REFERENCE_SETS, slots)
        uniform = draws.uniform(self.seeds, "evaluation", (step,), shape)
        actions = draws.pick(table.unsqueeze(2), uniform)
        everywhere = torch.arange(prompts).expand(seeds, -1)
        vectors = self.task.rewards(everywhere, actions.unsqueeze(-1))
        scores = (vectors @ GOLD).flatten(2)
        one, other = torch.triu_indices(slots, slots, offset=1)
        within = distances(vectors)[..., one, other]
        return {
            "mean_scalar_reward": seed_mean(scores),
            **{f"best_at_{size}": seed_mean(scores[..., :size].amax(-1)) for size in _POOLS},
            "pool_diversity_l1": seed_mean(within) if slots > 1 else torch.zeros(seeds),
        }
