"""Supplies old batches, from a queue with a fixed delay or from a prioritised replay buffer."""

import torch
from torch import Tensor

from hgrpo.formulas.batch import Rollout, choose, seed_mean
from hgrpo.sandbox import draws
from hgrpo.sandbox.rl.settings import RlSettings


class Supply:
    """Receives the fresh batch of each step, and returns the batch to train on.

    Without replay, the returned batch is `delay` steps old. With replay, each seed draws one of the
    batches that are at least `delay` and `replay_min_age` steps old, with probabilities
    proportional to their priorities. Before step `replay_start`, or if there is no such batch, the
    fresh batch is returned.
    """

    def __init__(self, settings: RlSettings):
        self.settings = settings
        self.kept: list[Rollout] = []
        # trained[s, a] is the number of batches of age a on which seed s has been trained so far.
        self.trained = torch.zeros(len(settings.seeds), self._room, dtype=torch.int64)

    @property
    def _room(self) -> int:
        return self.settings.replay_capacity or self.settings.delay + 1

    def next(self, fresh: Rollout, step: int) -> tuple[Rollout, dict[str, Tensor]]:
        """Return the batch to train on, and columns of the log [S]."""
        batch, metrics = self._next(fresh, step)
        self.trained.scatter_add_(1, batch.age.unsqueeze(1), torch.ones_like(self.trained[:, :1]))
        if self.settings.replay_capacity > 1:
            counts = self.trained.clone().unbind(1)
            metrics |= {f"trained_age_{age}": count for age, count in enumerate(counts)}
        return batch, metrics

    def _next(self, fresh: Rollout, step: int) -> tuple[Rollout, dict[str, Tensor]]:
        s = self.settings
        self.kept = [*self.kept, fresh][-self._room :]
        ages = list(range(len(self.kept) - 1, -1, -1))
        if not s.replay_capacity:
            oldest = ages[0] if ages[0] == s.delay else 0
            return self._aged([ages.index(oldest)] * len(s.seeds), ages), {}
        least = max(s.delay, s.replay_min_age)
        ready = [index for index, age in enumerate(ages) if age >= least]
        if not ready or step < s.replay_start:
            return fresh, self._metrics(fresh, torch.zeros(len(s.seeds)))
        worth = torch.stack([self._priority(self.kept[i], ages[i]) for i in ready], 1)
        worth = torch.where(worth.sum(1, keepdim=True) > 0, worth, 1.0)
        uniform = draws.uniform(s.seeds, "replay", (step,), ())
        picked = draws.pick((worth / worth.sum(1, keepdim=True)).log(), uniform)
        batch = self._aged([ready[i] for i in picked.tolist()], ages)
        return batch, self._metrics(batch, worth.gather(1, picked.unsqueeze(1)).squeeze(1))

    def _aged(self, which: list[int], ages: list[int]) -> Rollout:
        return choose(self.kept, which, torch.tensor([ages[index] for index in which]))

    def _priority(self, batch: Rollout, age: int) -> Tensor:
        kind = self.settings.replay_priority
        if kind == "uniform":
            return torch.ones(len(batch.age))
        if kind == "reward":
            return batch.rewards.abs().flatten(1).mean(1)
        surprisal = -batch.behaviour
        if kind == "surprisal":
            return seed_mean(surprisal, batch.mask)
        advantages = batch.rewards[..., None, None] - batch.collision
        if kind == "advantage":
            return seed_mean(advantages.abs(), batch.mask)
        delight = seed_mean((advantages * surprisal).relu(), batch.mask)
        fade = -self.settings.replay_age_decay * age if kind == "fresh_delight" else 0.0
        return delight * torch.tensor(fade).exp()

    def _metrics(self, batch: Rollout, priority: Tensor) -> dict[str, Tensor]:
        return {
            "replay_age": batch.age.float(),
            "replay_size": torch.full((len(batch.age),), float(len(self.kept))),
            "replay_priority": priority,
        }
