"""Starts episodes at turns of recorded trajectories.

Episodes that start in the same trajectory share the KV cache of their common tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hgrpo.games.base import Observation, Task, TextEnv
from hgrpo.rollout.engine import HoldsTexts, RolloutEngine
from hgrpo.trajectories.replay import Replay
from hgrpo.trajectories.trajectory import Trajectory


@dataclass(frozen=True)
class Start:
    """Starting point of an episode: a reset, or a turn of a recorded trajectory.

    Attributes:
        rollout: index of the episode among the task's rollouts.
        stream: key of the random stream for sampling.
        last_turn: maximum number of turns, including replayed turns.
        before: trajectory whose first turns are replayed; None to start with a reset.
        turns: number of turns of `before` to replay; less than its length.
    """

    task: Task
    rollout: int
    stream: int
    last_turn: int
    before: Trajectory | None = None
    turns: int = 0

    @property
    def tokens(self) -> int:
        """Number of tokens in `before` that precede the first new reply."""
        return self.before.turns[self.turns].span[0]

    def beginning(self, goal: str) -> Trajectory:
        """Return a new trajectory that contains the replayed part of `before`."""
        before = self.before
        trajectory = Trajectory(self.task, self.rollout, goal)
        trajectory.turns.extend(before.turns[: self.turns])
        trajectory.token_ids.extend(before.token_ids[: self.tokens])
        return trajectory


@dataclass
class _Trunk:
    """A recorded trajectory at whose turns episodes start.

    Attributes:
        number: id of the trajectory's tokens in the engine's cache.
        left: number of unfinished episodes that start in this trajectory.
        length: number of tokens before the last turn at which an episode starts.
        shared: whether episodes should share the trajectory's tokens in the engine's cache.
        held: whether the engine's cache already contains the trajectory's tokens.
    """

    number: int
    replay: Replay
    left: int = 0
    length: int = 0
    shared: bool = False
    held: bool = False


class Branching:
    """Starts the given episodes, and manages the environments and cached texts that they share.

    Args:
        take_env: returns an idle environment.
    """

    def __init__(
        self, engine: RolloutEngine, take_env: Callable[[], TextEnv], starts: Sequence[Start]
    ):
        self._engine = engine
        self._trunks: dict[int, _Trunk] = {}
        self._held = 0
        for start in starts:
            if start.before is None:
                continue
            trunk = self._trunks.get(id(start.before))
            if trunk is None:
                trunk = _Trunk(len(self._trunks), Replay(start.before, take_env))
                self._trunks[id(start.before)] = trunk
            trunk.left += 1
            trunk.length = max(trunk.length, start.tokens)
        holds = isinstance(engine, HoldsTexts)
        for trunk in self._trunks.values():
            trunk.shared = holds and trunk.left > 1

    def admit(self, start: Start, playing: int) -> bool:
        """Whether the engine has a slot for another episode; `playing` episodes are running.

        A cached text takes one slot, and cached texts may take at most half of all slots. If a text
        does not fit even though no other episode is running, its episodes do not share it.
        """
        room = self._engine.capacity - playing - self._held
        trunk = self._trunks.get(id(start.before))
        if trunk is None or trunk.held or not trunk.shared:
            return room > 0
        if room > 1 and 2 * self._held < self._engine.capacity:
            return True
        # While other episodes are running, wait for free slots.
        trunk.shared = playing > 0
        return not trunk.shared

    def enter(self, start: Start) -> tuple[TextEnv, Observation, int | None]:
        """Prepare an admitted episode.

        Returns:
            An environment in the state where the episode starts, the observation in this state, and
            the id of the cached text with which the conversation starts, or None.

        Raises:
            ReplayError: see `Replay`.
        """
        trunk = self._trunks[id(start.before)]
        env, seen = trunk.replay.before(start.turns)
        if trunk.shared and not trunk.held:
            self._engine.hold(trunk.number, start.before.token_ids[: trunk.length])
            trunk.held = True
            self._held += 1
        return env, seen, trunk.number if trunk.held else None

    def leave(self, start: Start) -> None:
        """Record the end of an episode. Free a trajectory's cached text after its last episode."""
        trunk = self._trunks[id(start.before)]
        trunk.left -= 1
        if not trunk.left:
            if trunk.held:
                self._engine.drop(trunk.number)
                self._held -= 1
            del self._trunks[id(start.before)]
