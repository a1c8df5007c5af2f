"""Starting points of episodes: a reset, or a turn of a recorded trajectory."""

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
        last_turn: maximum number of turns, including replayed ones.
        before: a trajectory whose first turns are replayed; None to begin at the reset.
        turns: number of replayed turns of `before`; less than its length.
    """

    task: Task
    rollout: int
    stream: int
    last_turn: int
    before: Trajectory | None = None
    turns: int = 0

    @property
    def tokens(self) -> int:
        """Number of tokens of `before` that precede the first new reply."""
        return self.before.turns[self.turns].span[0]

    def beginning(self, goal: str) -> Trajectory:
        """The shared prefix of the episode, taken from `before`."""
        before = self.before
        trajectory = Trajectory(self.task, self.rollout, goal)
        trajectory.turns.extend(before.turns[: self.turns])
        trajectory.token_ids.extend(before.token_ids[: self.tokens])
        return trajectory


@dataclass
class _Trunk:
    """A recorded trajectory in which episodes begin.

    Attributes:
        number: the engine's id of its text.
        replay: replays it.
        left: number of unfinished episodes that begin in it.
        length: number of tokens before the latest turn at which an episode begins.
        shared: whether the engine should hold the text; `held`: whether it does.
    """

    number: int
    replay: Replay
    left: int = 0
    length: int = 0
    shared: bool = False
    held: bool = False


class Branching:
    """Begins episodes in recorded trajectories; episodes of one trajectory share its cache.

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
        """Whether the start may begin now, next to `playing` episodes and the held texts.

        A held text takes one slot besides that of an episode, and all held texts take at most half
        of the engine's slots. If a start's text can never be held, the start begins without it.
        """
        room = self._engine.capacity - playing - self._held
        trunk = self._trunks.get(id(start.before))
        if trunk is None or trunk.held or not trunk.shared:
            return room > 0
        if room > 1 and 2 * self._held < self._engine.capacity:
            return True
        # Slots may become free while other episodes are running.
        trunk.shared = playing > 0
        return not trunk.shared

    def enter(self, start: Start) -> tuple[TextEnv, Observation, int | None]:
        """Begin an admitted start.

        Returns:
            An environment in the state before the start's turn, the observation there, and the id
            of the held text at the beginning of the conversation, if any.

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
        """Record the end of an episode; the last one of a trajectory frees the shared text."""
        trunk = self._trunks[id(start.before)]
        trunk.left -= 1
        if not trunk.left:
            if trunk.held:
                self._engine.drop(trunk.number)
                self._held -= 1
            del self._trunks[id(start.before)]
