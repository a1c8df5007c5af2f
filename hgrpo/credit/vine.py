"""Vine: the credit of turn t is the change in value, credit_t = V(after t) - V(before t).

The value before a turn is the mean return of continuations that the policy plays from there. The
value after the last turn is the episode's return. The credit is an unbiased estimate of the turn's
advantage. VinePPO computes the same credit for its steps (Kazemnejad et al. 2024, "VinePPO:
Refining Credit Assignment in RL Training of LLMs", https://arxiv.org/abs/2410.01679). In contrast,
the credit R - V(before t) of `counterfactual` also contains the noise of all later turns.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from hgrpo.credit.altered import AlterableSettings, alter
from hgrpo.credit.base import Context, CreditAssigner, Group
from hgrpo.rollout.continuations import Continuations, Point


class Settings(AlterableSettings):
    """Keys beside `kind: vine`."""

    needs_policy = True
    plays = True
    demands = {"turn_norm": ("none", "its credit is already an advantage")}

    continuations: int = Field(4, gt=0, description="number of continuations per turn")


class VineCredit(CreditAssigner):
    """Plays continuations from the state before every turn of a group."""

    def __init__(self, settings: Settings, context: Context):
        super().__init__(settings, context)
        self._continuations = Continuations(context.collector)

    def assign_many(self, groups: Sequence[Group]) -> list[list[np.ndarray]]:
        """Return V(after) - V(before) of each turn, altered by `alter`.

        Raises:
            ReplayError: when a turn was replayed, the environment's response was not the same.
        """
        played = [(trajectory, group) for group in groups for trajectory in group.trajectories]
        points = [
            Point(trajectory, turn, ("vine", *group.stream))
            for trajectory, group in played
            for turn in range(len(trajectory.turns))
        ]
        returns = self._continuations.returns(points, self.settings.continuations)
        ends = np.cumsum([len(trajectory.turns) for trajectory, _ in played], dtype=int)
        values = np.split(returns.mean(axis=1), ends[:-1])
        rows = (
            # The value after the last turn is the trajectory's return.
            np.diff(row, append=trajectory.env_return)
            for row, (trajectory, _) in zip(values, played, strict=True)
        )
        return [
            alter([next(rows) for _ in group.trajectories], self.settings, group)
            for group in groups
        ]

    def report(self) -> dict[str, float]:
        """Return the numbers of continuations, new replies, replayed turns and tokens."""
        return self._continuations.report()


make = VineCredit
