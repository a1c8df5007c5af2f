"""Replays a trajectory's actions and compares the observations with the stored ones."""

from collections.abc import Callable, Iterator

from hgrpo.errors import UserError
from hgrpo.games.base import Forkable, Observation, TextEnv
from hgrpo.trajectories.trajectory import Trajectory


class ReplayError(UserError, RuntimeError):
    """A replayed reset or action led to an observation that differs from the stored one."""


def play_again(env: TextEnv, trajectory: Trajectory, turns: int) -> Iterator[Observation]:
    """Reset the environment and replay the first `turns` actions of the trajectory.

    Yields:
        `turns` + 1 observations: one before each of these turns, and one after the last turn. The
        environment is always in the state that the yielded observation describes.

    Raises:
        ReplayError: an observation differs from that of the same turn in `trajectory`.
    """
    answer, move = env.reset(trajectory.task), "the reset"
    for index in range(turns + 1):
        known = trajectory.turns[index].observation if index < len(trajectory.turns) else None
        if known not in (None, answer.text):
            raise ReplayError(
                f"{trajectory.task.task_id} rollout {trajectory.rollout}: after replaying {move}, "
                f"expected observation {known!r}, got {answer.text!r}"
            )
        yield answer
        if index < turns:
            action = trajectory.turns[index].action
            answer, move = env.step(action).observation, repr(action)


class Replay:
    """Replays a trajectory and returns environments in the states before its turns.

    Args:
        take_env: returns an idle environment.
    """

    def __init__(self, trajectory: Trajectory, take_env: Callable[[], TextEnv]):
        self._trajectory, self._take_env = trajectory, take_env
        self._env: TextEnv | None = None

    def before(self, turn: int) -> tuple[TextEnv, Observation]:
        """Return an environment in the state before the turn, and its observation of this state.

        If turns are requested in order and the environment can fork, no turn is replayed twice.

        Raises:
            ReplayError: see `play_again`.
        """
        if self._env is None or self._turn > turn:
            self._env, self._turn = self._take_env(), -1
            self._states = play_again(self._env, self._trajectory, len(self._trajectory.turns))
        while self._turn < turn:
            self._seen = next(self._states)
            self._turn += 1
        env = self._env.fork() if isinstance(self._env, Forkable) else None
        if env is None:
            env, self._env = self._env, None
        return env, self._seen
