"""Plays demonstration episodes and returns them as rows of trajectories.parquet."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hgrpo.games.base import Observation, Task, TextEnv, check_step


@dataclass(frozen=True, slots=True)
class Played:
    """An episode: its row, its total progress, and its number of inadmissible actions."""

    row: dict
    progress: float
    refused: int


def play(
    env: TextEnv,
    task: Task,
    opening: Observation,
    source: str,
    player: Callable[[str | None], str | None],
    turn_cap: int,
) -> Played:
    """Play one episode, after `env.reset(task)`. `source` is the name of the player.

    Args:
        opening: the observation that `env.reset(task)` returned.
        player: maps the latest observation (None before the first action) to the next action, or
            to None to stop the episode.
    """
    observations, actions = [opening.text], []
    score = progress = 0.0
    refused, done, success = 0, False, False
    while len(actions) < turn_cap and not done:
        action = player(observations[-1] if actions else None)
        if action is None:
            break
        step = env.step(action)
        reward, gain = check_step(env, step, task, len(actions))
        actions.append(action)
        observations.append(step.observation.text)
        score += reward
        progress += gain
        refused += not step.info["admissible"]
        done, success = step.done, bool(step.success)
    row = {
        "task_id": task.task_id,
        "content_hash": task.content_hash,
        "task_type": task.task_type,
        "source": source,
        "goal": opening.goal,
        "observations": observations,
        "actions": actions,
        "success": success,
        "score": score,
        "n_turns": len(actions),
    }
    return Played(row, progress, refused)


def replayed(actions: Iterable[str]) -> Callable[[str | None], str | None]:
    """Create a player that replays these actions and ignores observations."""
    left = iter(actions)
    return lambda answer: next(left, None)


def shared_out(trajectories: int, panel: list[Task]) -> Iterator[tuple[Task, int]]:
    """Distribute a number of trajectories evenly over a panel, in panel order.

    Yields (task, number of earlier trajectories of this task). If `trajectories` is not a multiple
    of the panel size, the first tasks get one more than the others.
    """
    each, rest = divmod(trajectories, len(panel))
    for index, task in enumerate(panel):
        for repetition in range(each + (index < rest)):
            yield task, repetition
