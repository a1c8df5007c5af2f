"""Trajectories played again: what the environment says must be what it said then."""

from collections.abc import Callable, Iterable, Iterator

from hgrpo.envs.base import Observation, TextEnv
from hgrpo.errors import UserError
from hgrpo.trajectories.trajectory import Situation, Trajectory


class ReplayError(UserError, RuntimeError):
    """The environment answers otherwise than it did: other games, or another engine."""


def play_again(env: TextEnv, trajectory: Trajectory, turns: int) -> Iterator[Observation]:
    """Give the trajectory's first `turns` actions again.

    Yields:
        What is seen before each of these turns, and after them: turns + 1 observations. The
        environment is then in the situation that the observation shows.

    Raises:
        ReplayError: an observation is not that of the trajectory's turn.
    """
    seen = env.reset(trajectory.task)
    given = "the reset"
    for index in range(turns + 1):
        known = trajectory.turns[index].observation if index < len(trajectory.turns) else None
        if known not in (None, seen.text):
            raise ReplayError(
                f"{trajectory.task.task_id} rollout {trajectory.rollout}: {given} played again "
                f"was answered with {seen.text!r}, not {known!r}"
            )
        yield seen
        if index < turns:
            action = trajectory.turns[index].action
            seen, given = env.step(action).observation, repr(action)


def add_situations(trajectories: Iterable[Trajectory], make_env: Callable[[], TextEnv]) -> int:
    """Play the actions again where fingerprints of situations lack, the final one's included.

    Returns:
        The number of turns played again.

    Raises:
        ReplayError: the environment answers an action otherwise than it did.
    """
    env, played = None, 0
    for trajectory in trajectories:
        turns = trajectory.turns
        if not turns or (trajectory.final and all(turn.state for turn in turns)):
            continue
        env = env or make_env()
        for index, seen in enumerate(play_again(env, trajectory, len(turns))):
            state, commands = env.situation()
            if index < len(turns):
                turns[index].state, turns[index].commands = state, commands
            else:
                trajectory.final = Situation(seen.text, state, commands)
        played += len(turns)
    return played
