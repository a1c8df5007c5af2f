"""Counterfactual credit: what return would the policy get if it acted again at a turn?

The collector plays the episode again up to a chosen turn t. From there the policy plays on several
times. The mean return of these alternatives estimates the policy's value before turn t, and

    credit_t = R - mean return of the alternatives.

This credit is an advantage already, so it must not be centred or scaled: it is above 0 if the
episode went better than the policy does on average from turn t. A turn that was not chosen gets
0, which says nothing about the turn; `verdicts` gives NaN instead. With the full horizon the
estimate is unbiased. A shorter horizon counts rewards beyond the horizon as 0.
"""

from collections import Counter

import numpy as np
from pydantic import Field

from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.credit.settings import CreditSettings, StoredCredit
from hgrpo.rollout.collector import Collector, Start
from hgrpo.streams import generator, key

_COUNTS = ("cf_branches", "cf_replies", "cf_replayed_turns", "cf_tokens")


class Settings(CreditSettings):
    """Keys beside `kind: counterfactual`."""

    needs_policy = True
    plays = True
    demands = {
        "turn_norm": (
            "none",
            "its credit is an advantage already, and a z-score would also give one to turns that "
            "were not drawn",
        )
    }

    turns_per_trajectory: int | None = Field(
        2, gt=0, description="turns drawn at random from a trajectory; null: all"
    )
    alternatives: int = Field(2, gt=0, description="continuations from each chosen turn")
    horizon: int | None = Field(
        None, gt=0, description="turns a continuation may have; null: up to the turn cap"
    )

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """Play from every turn, because credit 0 of a turn that was not drawn says nothing."""
        return StoredCredit(self.model_copy(update={"turns_per_trajectory": None}), self.sums_to)


class CounterfactualCredit(CreditAssigner):
    """Plays the alternatives of a group together, as many at a time as the engine holds."""

    def __init__(self, settings: Settings, collector: Collector):
        self._settings, self._collector = settings, collector
        self._counts = Counter(dict.fromkeys(_COUNTS, 0))

    def assign(self, group: Group) -> list[np.ndarray]:
        """`verdicts`, but with 0 for the turns that were not chosen; K float64 arrays [T_k]."""
        return [np.nan_to_num(row) for row in self.verdicts(group)]

    def verdicts(self, group: Group) -> list[np.ndarray]:
        """Play the alternatives and return the credit of the chosen turns, K float64 arrays [T_k].

        Turns that were not chosen have NaN.

        Raises:
            ReplayError: the environment answered differently when a turn was played again.
        """
        chosen = [(k, t) for k, _ in enumerate(group.trajectories) for t in self._turns(group, k)]
        each = self._settings.alternatives
        starts = [self._start(group, k, t, n) for k, t in chosen for n in range(each)]
        played = self._collector.play(starts)
        returns = np.array([t.env_return for t in played]).reshape(-1, each)
        found = [np.full(len(t.turns), np.nan) for t in group.trajectories]
        for (k, t), alternatives in zip(chosen, returns, strict=True):
            found[k][t] = group.trajectories[k].env_return - alternatives.mean()
        replayed = each * sum(t for _, t in chosen)
        self._counts.update(
            cf_branches=len(played),
            cf_replies=sum(len(t.turns) for t in played) - replayed,
            cf_replayed_turns=replayed,
            cf_tokens=sum(len(t.token_ids) for t in played),
        )
        return found

    def report(self) -> dict[str, float]:
        """Counts of alternatives, and of their new replies, replayed turns and tokens."""
        counts, self._counts = self._counts, Counter(dict.fromkeys(_COUNTS, 0))
        return dict(counts)

    def _turns(self, group: Group, k: int) -> list[int]:
        trajectory = group.trajectories[k]
        length, wanted = len(trajectory.turns), self._settings.turns_per_trajectory
        if wanted is None or wanted >= length:
            return list(range(length))
        rng = generator("counterfactual-turns", *group.stream, trajectory.rollout)
        return sorted(rng.choice(length, wanted, replace=False).tolist())

    def _start(self, group: Group, k: int, t: int, n: int) -> Start:
        trajectory, cap = group.trajectories[k], self._collector.turn_cap
        horizon = self._settings.horizon
        stream = key("counterfactual", *group.stream, trajectory.rollout, t, n)
        last = cap if horizon is None else min(cap, t + horizon)
        return Start(trajectory.task, trajectory.rollout, stream, last, trajectory, t)


def make(settings: Settings, context: Context) -> CounterfactualCredit:
    """Make the assigner, which plays with the context's collector."""
    return CounterfactualCredit(settings, context.collector)
