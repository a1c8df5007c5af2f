"""Plays continuations of recorded episodes from given turns, to estimate the expected return."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hgrpo.games.streams import key
from hgrpo.rollout.branching import Start
from hgrpo.rollout.collector import Collector
from hgrpo.trajectories.trajectory import Trajectory

# Columns of the log: the numbers of continuations, new replies, replayed turns and tokens.
COUNTS = ("cf_branches", "cf_replies", "cf_replayed_turns", "cf_tokens")


@dataclass(frozen=True)
class Point:
    """The point before a turn of a recorded trajectory; turns are counted from 0.

    Attributes:
        stream: first parts of the name of each continuation's random stream.
    """

    trajectory: Trajectory
    turn: int
    stream: tuple[object, ...]


class Continuations:
    """Plays continuations from many points in one batch, limited by the engine's capacity."""

    def __init__(self, collector: Collector):
        self._collector = collector
        self._counts = Counter(dict.fromkeys(COUNTS, 0))

    def returns(self, points: Sequence[Point], each: int, horizon: int | None = None) -> np.ndarray:
        """Play `each` continuations from each point.

        The return of a continuation includes the rewards of the replayed turns before its point.

        Args:
            horizon: maximum number of new turns. If None, only the turn cap applies.

        Returns:
            The return of every continuation, float64 [len(points), each].

        Raises:
            ReplayError: a replayed turn had a different result than in the recording.
        """
        starts = [self._start(point, n, horizon) for point in points for n in range(each)]
        played = self._collector.play(starts)
        replayed = each * sum(point.turn for point in points)
        self._counts.update(
            cf_branches=len(played),
            cf_replies=sum(len(t.turns) for t in played) - replayed,
            cf_replayed_turns=replayed,
            cf_tokens=sum(len(t.token_ids) for t in played),
        )
        returns = np.array([t.env_return for t in played], dtype=np.float64)
        return returns.reshape(len(points), each)

    def report(self) -> dict[str, float]:
        """Return the counts since the last call, keyed by `COUNTS`."""
        counts, self._counts = self._counts, Counter(dict.fromkeys(COUNTS, 0))
        return dict(counts)

    def _start(self, point: Point, n: int, horizon: int | None) -> Start:
        trajectory, turn, cap = point.trajectory, point.turn, self._collector.turn_cap
        stream = key(*point.stream, trajectory.rollout, turn, n)
        last = cap if horizon is None else min(cap, turn + horizon)
        return Start(trajectory.task, trajectory.rollout, stream, last, trajectory, turn)
