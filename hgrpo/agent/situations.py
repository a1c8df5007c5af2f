"""Situations of turns that were played without them."""

from collections.abc import Callable, Iterable

from hgrpo.agent.trajectory import Trajectory
from hgrpo.envs.base import TextEnv
from hgrpo.errors import UserError


def add_situations(trajectories: Iterable[Trajectory], make_env: Callable[[], TextEnv]) -> int:
    """Play the actions again where turns lack the fingerprints of their situations; no new play.

    Returns:
        The number of turns played again.

    Raises:
        UserError: the environment answers an action otherwise than it did.
    """
    env, turns = None, 0
    for trajectory in trajectories:
        if all(turn.state for turn in trajectory.turns):
            continue
        env = env or make_env()
        seen = env.reset(trajectory.task)
        for turn in trajectory.turns:
            if seen.text != turn.observation:
                raise UserError(
                    f"{trajectory.task.task_id} rollout {trajectory.rollout}: played again, the "
                    f"environment says {seen.text!r} and not {turn.observation!r}"
                )
            turn.state, turn.commands = env.situation()
            seen = env.step(turn.action).observation
            turns += 1
    return turns
