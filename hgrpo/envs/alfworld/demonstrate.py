"""Demonstrations in ALFWorld: the scripted searcher, or the games' own walkthroughs."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hgrpo import streams
from hgrpo.envs.alfworld.env import AlfworldEnv
from hgrpo.envs.alfworld.expert import Favourites, Searcher, informed
from hgrpo.envs.alfworld.goals import read
from hgrpo.envs.alfworld.house import Household
from hgrpo.envs.alfworld.settings import AlfworldConfig
from hgrpo.envs.base import Task

INFORMED = "a scripted player that knows where things tend to be"


def data_files(config: AlfworldConfig) -> list[dict]:
    """None: what it reads belongs to the assets."""
    return []


def demonstrate(
    config: AlfworldConfig, assets: Path, panel: list[Task], seed: int, skipped: Counter
) -> Iterator[dict]:
    """Yield rows of trajectories.parquet, game by game, shared out evenly over the panel.

    A goal in people's words is not understood by the expert: its walkthrough is taken instead,
    and a game without one is left out and counted in `skipped`.
    """
    expert = config.expert
    env = AlfworldEnv(assets, config.engine)
    each, rest = divmod(expert.trajectories, len(panel))
    for index, task in enumerate(panel):
        understood = read(env.reset(task).goal) is not None
        for repetition in range(each + (index < rest)):
            name = (seed, task.task_id, repetition)
            walkthrough = None
            source = streams.generator("expert-source", *name)
            if not understood or source.random() < expert.walkthrough_share:
                walkthrough = _walkthrough(assets / task.path / "game.tw-pddl")
            if walkthrough is None and not understood:
                skipped["goal not understood, and no walkthrough"] += 1
                continue
            yield _play(env, task, config, name, walkthrough)


def _walkthrough(path: Path) -> list[str] | None:
    return json.loads(path.read_text()).get("walkthrough") or None


def _play(
    env: AlfworldEnv,
    task: Task,
    config: AlfworldConfig,
    name: tuple,
    walkthrough: list[str] | None = None,
    favourites: Favourites | None = None,
) -> dict:
    """One trajectory as a row; `name` is the key of its random stream."""
    opening = env.reset(task)
    knobs = config.expert if favourites is None else informed(config.expert)
    if walkthrough is None:
        rng = streams.generator("expert", *name)
        player = Searcher(opening.text, opening.goal, knobs, rng, config.grammar, favourites)
        command, cap = player.act(), knobs.turn_cap
    else:
        command, cap = walkthrough[0], len(walkthrough)
    observations, actions, won = [opening.text], [], False
    for turn in range(1, cap + 1):
        step = env.step(command)
        actions.append(command)
        observations.append(step.observation.text)
        won = step.success
        if step.done or turn == cap:
            break
        command = player.act(observations[-1]) if walkthrough is None else walkthrough[turn]
    return {
        "task_id": task.task_id,
        "content_hash": task.content_hash,
        "task_type": task.task_type,
        "source": "expert" if walkthrough is None else "walkthrough",
        "goal": opening.goal,
        "observations": observations,
        "actions": actions,
        "success": won,
        "score": float(won),
        "n_turns": len(actions),
    }


def ceiling(
    config: AlfworldConfig, assets: Path, panel: list[Task], seed: int
) -> list[dict] | None:
    """Rows of the searcher that knows the habits; None where the habits are not ours."""
    if config.games.generate is None:
        return None
    env = AlfworldEnv(assets, config.engine)
    usual = Household(config.games.generate).usual
    return [
        _play(env, task, config, ("informed", seed, task.task_id), None, usual) for task in panel
    ]
