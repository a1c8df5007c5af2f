"""Demonstrations in WebShop: by a reader of instructions, the informed oracle, or people."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

from hgrpo import streams
from hgrpo.config.user_path import user_path
from hgrpo.envs.base import Task
from hgrpo.envs.make import env_factory
from hgrpo.envs.webshop import human
from hgrpo.envs.webshop.data import provide
from hgrpo.envs.webshop.env import WebshopEnv
from hgrpo.envs.webshop.recorded import Replayer, on_panel
from hgrpo.envs.webshop.replay import reward_differs
from hgrpo.envs.webshop.session import Session
from hgrpo.envs.webshop.settings import ShopperConfig, WebshopConfig
from hgrpo.envs.webshop.shopper import Oracle, Reader

INFORMED = "the oracle, which knows the product"


class Player(Protocol):
    """Plays one session."""

    def act(self) -> str | None:
        """The next action; None if there is none."""


def data_files(config: WebshopConfig) -> list[dict]:
    """Name, size and SHA-256 of people's trajectories, fetched if need be; [] where none are read.

    Raises:
        UserError: see `provide`.
    """
    if config.expert.recorded is None:
        return []
    return [provide(_recorded(config.expert), config.products.download)]


def demonstrate(
    config: WebshopConfig, assets: Path, panel: list[Task], seed: int, skipped: Counter
) -> Iterator[dict]:
    """Yield rows of trajectories.parquet.

    The scripted shopper's are shared out evenly over the panel, goal by goal; people's come in the
    order of their files, wherever their goal is on the panel. Call `data_files` before.

    Args:
        skipped: trajectories that were left out, or are odd but kept, by reason; counted up here.
            One that pays less than `expert.least_reward` is left out.
    """
    env = env_factory(config, assets)()
    if config.expert.recorded is None:
        rows = _scripted(env, config.expert, panel, seed)
    else:
        rows = _people(env, config.expert, panel, skipped)
    for row in rows:
        if row["score"] < config.expert.least_reward:
            skipped["reward below expert.least_reward"] += 1
        else:
            yield row


def ceiling(config: WebshopConfig, assets: Path, panel: list[Task], seed: int) -> list[dict]:
    """Rows of the oracle: what knowing the product brings, which is not always 1."""
    env = env_factory(config, assets)()
    return [_play(env, task, "oracle", Oracle, config.expert.turn_cap)[0] for task in panel]


def _scripted(
    env: WebshopEnv, expert: ShopperConfig, panel: list[Task], seed: int
) -> Iterator[dict]:
    each, rest = divmod(expert.trajectories, len(panel))
    for index, task in enumerate(panel):
        for repetition in range(each + (index < rest)):
            if expert.knows == "product":
                source, player = "oracle", Oracle
            else:
                rng = streams.generator("shopper", seed, task.task_id, repetition)
                source, player = "reader", partial(Reader, knobs=expert.habits, rng=rng)
            yield _play(env, task, source, player, expert.turn_cap)[0]


def _people(
    env: WebshopEnv, expert: ShopperConfig, panel: list[Task], counts: Counter
) -> Iterator[dict]:
    """Rows of people's trajectories; of one with an action that does nothing here, none."""
    trajectories = on_panel(human.read(_recorded(expert), counts), env.assets, panel, counts)
    for trajectory, task in trajectories[: expert.trajectories]:
        player = partial(Replayer, actions=trajectory.actions)
        row, refused = _play(env, task, "human", player, expert.turn_cap)
        if refused:
            counts["left out: an action that this shop does not admit"] += 1
            continue
        if row["n_turns"] < len(trajectory.actions):
            counts["cut at expert.turn_cap"] += 1
        elif trajectory.reward is not None and reward_differs(trajectory.reward, env.session):
            counts["reward other than the recorded one: kept"] += 1
        yield row


def _recorded(expert: ShopperConfig) -> Path:
    return user_path(expert.recorded, "expert.recorded")


def _play(
    env: WebshopEnv, task: Task, source: str, player: Callable[[Session], Player], turn_cap: int
) -> tuple[dict, int]:
    """One trajectory as a row, and how many of its actions were not admitted."""
    opening = env.reset(task)
    shopper = player(env.session)
    observations, actions, paid, done = [opening.text], [], 0.0, False
    progress, refused = 0.0, 0
    while len(actions) < turn_cap and not done:
        action = shopper.act()
        if action is None:
            break
        step = env.step(action)
        actions.append(action)
        observations.append(step.observation.text)
        paid, done = step.env_reward, step.done
        progress += step.progress
        refused += not step.info["admissible"]
    row = {
        "task_id": task.task_id,
        "content_hash": task.content_hash,
        "task_type": task.task_type,
        "source": source,
        "goal": opening.goal,
        "observations": observations,
        "actions": actions,
        "success": paid == 1.0,
        "score": paid,
        "progress": progress,
        "n_turns": len(actions),
    }
    return row, refused
