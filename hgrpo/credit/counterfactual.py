"""Counterfactual credit: the return minus the mean return of resampled continuations.

The collector replays the episode up to a randomly drawn turn t. The policy then plays several
continuations, whose mean return is an estimate of the policy's value before turn t. The credit is

    credit_t = R - mean return of the continuations.

It is an advantage, so it must not be centred or scaled. For turns that are not drawn, `assign`
returns 0 and `verdicts` returns NaN. With the full horizon, the estimate is unbiased. A shorter
horizon ignores later rewards.

Two settings reduce the number of continuations. With `least_entropy`, only turns at which the
policy was uncertain are drawn, because a nearly deterministic policy would repeat its reply. With
`share_of_groups`, continuations are played only for a random share of the groups. This is
sufficient for TurnRD, which learns from the credit of drawn turns in all rounds so far.
"""

import numpy as np
from pydantic import Field

from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.credit.settings import CreditSettings, StoredCredit
from hgrpo.games.streams import generator
from hgrpo.rollout.continuations import Continuations, Point
from hgrpo.trajectories.trajectory import Trajectory


class Settings(CreditSettings):
    """Keys beside `kind: counterfactual`."""

    needs_policy = True
    plays = True
    demands = {
        "turn_norm": (
            "none",
            "its credit is already an advantage, and a z-score would give credit to turns that "
            "were not drawn",
        )
    }

    turns_per_trajectory: int | None = Field(
        2, gt=0, description="turns drawn at random from each trajectory; null: all"
    )
    alternatives: int = Field(2, gt=0, description="continuations from each drawn turn")
    horizon: int | None = Field(
        None, gt=0, description="maximum turns of a continuation; null: up to the turn cap"
    )
    least_entropy: float = Field(
        0.0,
        ge=0,
        description="minimum entropy of the policy at a drawn turn, in nats, summed over the "
        "tokens of the reply; values above 0 require an additional forward pass",
    )
    share_of_groups: float = Field(
        1.0,
        gt=0,
        le=1,
        description="share of groups, drawn at random, for which continuations are played; turns "
        "of all other groups get credit 0",
    )

    def on_stored_rollouts(self, fitted: bool) -> StoredCredit:
        """Play continuations from every turn, so that every turn has an estimate."""
        whole = {"turns_per_trajectory": None, "least_entropy": 0.0, "share_of_groups": 1.0}
        return StoredCredit(self.model_copy(update=whole), self.sums_to)


class CounterfactualCredit(CreditAssigner):
    """Plays all continuations of a group in one batch."""

    def __init__(self, settings: Settings, context: Context):
        super().__init__(settings, context)
        self._continuations = Continuations(context.collector)

    def assign(self, group: Group) -> list[np.ndarray]:
        """Return `verdicts` with NaN replaced by 0, K float64 arrays [T_k]."""
        return [np.nan_to_num(row) for row in self.verdicts(group)]

    def verdicts(self, group: Group) -> list[np.ndarray]:
        """Play the continuations; return the credit of the drawn turns, K float64 arrays [T_k].

        The credit of turns that are not drawn is NaN.

        Raises:
            ReplayError: the environment answered differently when a turn was replayed.
        """
        chosen, share = [], self.settings.share_of_groups
        if share == 1 or generator("counterfactual-groups", *group.stream).random() < share:
            chosen = [(k, t) for k in range(len(group.trajectories)) for t in self._turns(group, k)]
        stream = ("counterfactual", *group.stream)
        points = [Point(group.trajectories[k], t, stream) for k, t in chosen]
        settings = self.settings
        returns = self._continuations.returns(points, settings.alternatives, settings.horizon)
        rows = [np.full(len(t.turns), np.nan) for t in group.trajectories]
        for (k, t), alternatives in zip(chosen, returns, strict=True):
            rows[k][t] = group.trajectories[k].env_return - alternatives.mean()
        return rows

    def teach(self, group: Group) -> list[np.ndarray]:
        """Return `verdicts`, and store them in the turns as targets for later fits."""
        rows = self.verdicts(group)
        for trajectory, row in zip(group.trajectories, rows, strict=True):
            for turn, verdict in zip(trajectory.turns, row, strict=True):
                turn.target = None if np.isnan(verdict) else float(verdict)
        return rows

    def report(self) -> dict[str, float]:
        """Return the numbers of continuations and of their replies, replayed turns and tokens."""
        return self._continuations.report()

    def _turns(self, group: Group, k: int) -> list[int]:
        trajectory, settings = group.trajectories[k], self.settings
        rng = generator("counterfactual-turns", *group.stream, trajectory.rollout)
        if settings.least_entropy == 0:
            return draw_turns(len(trajectory.turns), settings.turns_per_trajectory, rng)
        entropies = self._entropies(trajectory)
        return uncertain_turns(
            entropies, settings.least_entropy, settings.turns_per_trajectory, rng
        )

    def _entropies(self, trajectory: Trajectory) -> np.ndarray:
        from hgrpo.policy.logprobs import reply_entropies

        tokens, temperature = trajectory.token_ids, self.context.collector.temperature
        replies = reply_entropies(self.context.policy, tokens, trajectory.spans, temperature)
        return np.array([reply.sum() for reply in replies])


make = CounterfactualCredit


def draw_turns(length: int, number: int | None, rng: np.random.Generator) -> list[int]:
    """Draw `number` distinct turns of `length`, sorted. If `number` is None, return all turns."""
    if number is None or number >= length:
        return list(range(length))
    return sorted(rng.choice(length, number, replace=False).tolist())


def uncertain_turns(
    entropies: np.ndarray, least: float, number: int | None, rng: np.random.Generator
) -> list[int]:
    """Like `draw_turns`, but only turns whose entropy [T] is at least `least` nats are drawn."""
    allowed = np.flatnonzero(entropies >= least)
    return [int(allowed[index]) for index in draw_turns(len(allowed), number, rng)]
