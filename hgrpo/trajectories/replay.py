"""Play a trajectory's actions again and check that the environment answers as it did."""

from collections.abc import Callable, Iterable, Iterator

from hgrpo.envs.base import Observation, TextEnv
from hgrpo.errors import UserError
from hgrpo.trajectories.trajectory import FinalState, Trajectory


class ReplayError(UserError, RuntimeError):
    """The environment answered a replayed action differently: the game or the engine changed."""


def play_again(env: TextEnv, trajectory: Trajectory, turns: int) -> Iterator[Observation]:
    """Give the trajectory's first `turns` actions again.

    Yields:
        The observation before each of these turns and the one after them: turns + 1 in all. When
        an observation is yielded, the environment is in the state that the observation shows.

    Raises:
        ReplayError: an observation differs from the one the trajectory recorded.
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


def add_fingerprints(trajectories: Iterable[Trajectory], make_env: Callable[[], TextEnv]) -> int:
    """Fill in missing fingerprints of states by playing; return the number of turns played again.

    Trajectories are filled in place, final states too; those that have fingerprints, or no turn,
    are left alone. `make_env` is called once, when the first trajectory needs it.

    Raises:
        ReplayError: the environment answers an action differently than it did.
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
                trajectory.final = FinalState(seen.text, state, commands)
        played += len(turns)
    return played
