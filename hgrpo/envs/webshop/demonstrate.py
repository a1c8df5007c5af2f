"""Demonstrations in WebShop: the reader of instructions, or the oracle that knows the product."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hgrpo import streams
from hgrpo.config.env_webshop import WebshopConfig
from hgrpo.envs.base import Task
from hgrpo.envs.make import env_factory
from hgrpo.envs.webshop.env import WebshopEnv
from hgrpo.envs.webshop.shopper import Oracle, Reader

INFORMED = "the oracle, which knows the product"


def demonstrate(
    config: WebshopConfig, assets: Path, panel: list[Task], seed: int, skipped: Counter
) -> Iterator[dict]:
    """Yield rows of trajectories.parquet, goal by goal, shared out evenly over the panel.

    A trajectory that pays less than `expert.least_reward` is left out and counted in `skipped`.
    """
    expert = config.expert
    env = env_factory(config, assets)()
    each, rest = divmod(expert.trajectories, len(panel))
    for index, task in enumerate(panel):
        for repetition in range(each + (index < rest)):
            name = (seed, task.task_id, repetition)
            row = _play(env, task, config, expert.knows, name)
            if row["score"] < expert.least_reward:
                skipped["reward below expert.least_reward"] += 1
            else:
                yield row


def ceiling(config: WebshopConfig, assets: Path, panel: list[Task], seed: int) -> list[dict]:
    """Rows of the oracle: what knowing the product brings, which is not always 1."""
    env = env_factory(config, assets)()
    return [_play(env, task, config, "product", ("ceiling", seed, task.task_id)) for task in panel]


def _play(env: WebshopEnv, task: Task, config: WebshopConfig, knows: str, name: tuple) -> dict:
    """One trajectory as a row; `name` is the key of its random stream."""
    opening = env.reset(task)
    if knows == "product":
        player = Oracle(env.session)
    else:
        player = Reader(env.session, config.expert.habits, streams.generator("shopper", *name))
    observations, actions, paid, done = [opening.text], [], 0.0, False
    while len(actions) < config.expert.turn_cap and not done:
        action = player.act()
        if action is None:
            break
        step = env.step(action)
        actions.append(action)
        observations.append(step.observation.text)
        paid, done = step.env_reward, step.done
    return {
        "task_id": task.task_id,
        "content_hash": task.content_hash,
        "task_type": task.task_type,
        "source": "oracle" if knows == "product" else "reader",
        "goal": opening.goal,
        "observations": observations,
        "actions": actions,
        "success": paid == 1.0,
        "score": paid,
        "n_turns": len(actions),
    }
