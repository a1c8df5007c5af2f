"""Where episodes begin: at a reset, or within a recorded trajectory, which they then share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hgrpo.games.base import Observation, Task, TextEnv
from hgrpo.rollout.engine import HoldsTexts, RolloutEngine
from hgrpo.trajectories.replay import Replay
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
        """The episode's beginning, taken from `before`."""
        before = self.before
        trajectory = Trajectory(self.task, self.rollout, goal)
        trajectory.turns.extend(before.turns[: self.turns])
        trajectory.token_ids.extend(before.token_ids[: self.tokens])
        return trajectory


@dataclass
class _Trunk:
    """A trajectory that episodes begin within.

    Attributes:
        number: the engine's name of its text.
        replay: plays it again.
        left: how many episodes within it have not ended.
        length: tokens before the last turn that an episode begins at.
        shared: whether the engine is to hold the text; `held`: whether it does.
    """

    number: int
    replay: Replay
    left: int = 0
    length: int = 0
    shared: bool = False
    held: bool = False


class Branching:
    """Begins episodes within recorded trajectories, and lets episodes of one trajectory share it.

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
        """Whether the start may begin now, beside `playing` episodes and the held texts.

        A text takes room for itself and one episode, and all texts take at most half of the
        engine's room. If that never allows this start's text, the start does without.
        """
        room = self._engine.capacity - playing - self._held
        trunk = self._trunks.get(id(start.before))
        if trunk is None or trunk.held or not trunk.shared:
            return room > 0
        if room > 1 and 2 * self._held < self._engine.capacity:
            return True
        # While episodes are played, room may still become free.
        trunk.shared = playing > 0
        return not trunk.shared

    def enter(self, start: Start) -> tuple[TextEnv, Observation, int | None]:
        """Begin an admitted start.

        Returns:
            An environment in the state before the start's turn, the observation there, and the
            number of the held text that the conversation begins with, if any.

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
        """Note that an episode has ended and was released; the last one frees what all shared."""
        trunk = self._trunks[id(start.before)]
        trunk.left -= 1
        if not trunk.left:
            if trunk.held:
                self._engine.drop(trunk.number)
                self._held -= 1
            del self._trunks[id(start.before)]
