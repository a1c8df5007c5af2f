"""Where an episode begins: at a task's reset, or before a turn of a recorded trajectory."""

from dataclasses import dataclass

from hgrpo.games.base import Task
from hgrpo.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class Start:
    """Where an episode begins.

    Attributes:
        rollout: index of the episode among the task's rollouts.
        stream: key of the conversation's random stream.
        last_turn: number of turns, replayed ones included, after which the episode is cut off.
        before: a trajectory whose first turns are played again; None to begin at the reset.
        turns: how many turns of `before` are played again; fewer than `before` has.
    """

    task: Task
    rollout: int
    stream: int
    last_turn: int
    before: Trajectory | None = None
    turns: int = 0

    @property
    def tokens(self) -> int:
        """How many tokens of `before` stand before the first new reply."""
        return self.before.turns[self.turns].span[0]

    def beginning(self, goal: str) -> Trajectory:
        """What the episode takes over from `before`."""
        before = self.before
        trajectory = Trajectory(self.task, self.rollout, goal)
        trajectory.turns.extend(before.turns[: self.turns])
        trajectory.token_ids.extend(before.token_ids[: self.tokens])
        return trajectory
