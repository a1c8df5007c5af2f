"""Counterfactual credit: what the policy would have got, had it acted anew at a turn.

At a chosen turn t the episode is played again up to t, and from there on the policy plays on by
itself several times. Their mean return is an estimate of the policy's value at that moment, and

    credit_t = R - mean return of the alternatives.

That is an advantage already, above 0 where the episode went better than the policy would have made
it from there: it is not to be centred or scaled. Turns that were not chosen get 0, which is no
verdict; `verdicts` tells the two apart. With the full horizon the estimate is unbiased; a shorter
one counts what is not reached as nothing.
"""

import numpy as np
from pydantic import Field

from hgrpo.config.strict import Strict
from hgrpo.credit.base import Context, Group
from hgrpo.rollout.collector import Collector, Start
from hgrpo.streams import generator, key

DEMANDS = {
    "turn_norm": (
        "none",
        "its credit is an advantage already, and a z-score would give one to turns it did not draw",
    )
}


class Settings(Strict):
    """Keys beside `kind: counterfactual`."""

    turns_per_trajectory: int | None = Field(2, gt=0, description="drawn at random; null: all")
    alternatives: int = Field(2, gt=0, description="continuations from each chosen turn")
    horizon: int | None = Field(
        None, gt=0, description="turns a continuation may have; null: up to the turn cap"
    )


class CounterfactualCredit:
    """Plays the alternatives of a group together, as many at a time as the engine holds."""

    def __init__(self, settings: Settings, collector: Collector):
        self._settings, self._collector = settings, collector
        self._counts = dict.fromkeys(
            ("cf_branches", "cf_replies", "cf_replayed_turns", "cf_tokens"), 0
        )

    def assign(self, group: Group) -> list[np.ndarray]:
        """Return less the mean of the alternatives at chosen turns, 0 elsewhere; K arrays [T_k].

        Raises:
            ReplayError: the environment did not answer the replay as it did the episode.
        """
        return [np.nan_to_num(row) for row in self.verdicts(group)]

    def verdicts(self, group: Group) -> list[np.ndarray]:
        """The credit of the chosen turns, NaN for the others; K float64 arrays [T_k].

        Raises:
            ReplayError: the environment did not answer the replay as it did the episode.
        """
        chosen = [(k, t) for k, _ in enumerate(group.trajectories) for t in self._turns(group, k)]
        played = self._collector.play(
            [self._start(group, k, t, n) for k, t in chosen for n in self._range()]
        )
        returns = np.array([t.env_return for t in played]).reshape(-1, self._settings.alternatives)
        found = [np.full(len(t.turns), np.nan) for t in group.trajectories]
        for (k, t), alternatives in zip(chosen, returns, strict=True):
            found[k][t] = group.trajectories[k].env_return - alternatives.mean()
        self._counts["cf_branches"] += len(played)
        replayed = [t for _, t in chosen for _ in self._range()]
        self._counts["cf_replayed_turns"] += sum(replayed)
        self._counts["cf_replies"] += sum(len(t.turns) for t in played) - sum(replayed)
        self._counts["cf_tokens"] += sum(len(t.token_ids) for t in played)
        return found

    def report(self) -> dict[str, float]:
        """Continuations, replies the engine gave in them, turns replayed, tokens of all of it."""
        counts, self._counts = self._counts, dict.fromkeys(self._counts, 0)
        return counts

    def _range(self) -> range:
        return range(self._settings.alternatives)

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
    """The assigner; it plays with the context's collector."""
    return CounterfactualCredit(settings, context.collector)
