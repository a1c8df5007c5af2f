"""Plays demonstration episodes, and returns them as rows of trajectories.parquet."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hgrpo.games.base import Observation, Task, TextEnv, check_step


@dataclass(frozen=True, slots=True)
class Played:
    """An episode as a row, with total progress and number of inadmissible actions."""

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
    """Play one episode after `env.reset(task)`; `source` is the player's name.

    Args:
        opening: return value of that reset.
        player: maps the observation after the last action (None before the first) to the next
            action, or None to stop.
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
    """Yield `trajectories` pairs (task, index of the repetition), in panel order.

    Each task occurs equally often, except that the first ones may occur once more.
    """
    each, rest = divmod(trajectories, len(panel))
    for index, task in enumerate(panel):
        for repetition in range(each + (index < rest)):
            yield task, repetition
