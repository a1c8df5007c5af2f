"""Creates demonstrations in WebShop. The player is the `Reader`, the oracle or a human."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hgrpo.games import streams
from hgrpo.games.base import Panels, Task
from hgrpo.games.demonstration import Played, play, replayed, shared_out
from hgrpo.games.user_path import user_path
from hgrpo.games.webshop import human
from hgrpo.games.webshop.data import provide
from hgrpo.games.webshop.env import WebshopEnv
from hgrpo.games.webshop.recorded import as_shown, on_panel, reward_differs
from hgrpo.games.webshop.settings import ShopperSettings, WebshopSettings
from hgrpo.games.webshop.shopper import Reader, oracle


def data_files(config: WebshopSettings) -> list[dict]:
    """Name, size and hash of the human trajectories; an empty list if there are none."""
    if config.expert.recorded is None:
        return []
    return [provide(_recorded(config.expert), config.products.download)]


def demonstrate(
    config: WebshopSettings, assets: Path, panels: Panels, seed: int, skipped: Counter
) -> Iterator[dict]:
    """Implement `Environment.demonstrate`. Call `data_files` before this function.

    With a scripted player, `shared_out` distributes the trajectories evenly over the train panel.
    Human trajectories are yielded in file order, if their goal is on the train panel.
    """
    env = WebshopEnv(assets, config)
    if config.expert.recorded is None:
        return _scripted(env, config.expert, panels["train"], seed)
    return _people(env, config.expert, panels, skipped)


def ceiling(config: WebshopSettings, assets: Path, panel: list[Task]) -> list[dict]:
    """One row per task with the trajectory of the oracle, whose reward can be below 1."""
    env = WebshopEnv(assets, config)
    return [_by_oracle(env, task, config.expert.turn_cap) for task in panel]


def _scripted(
    env: WebshopEnv, expert: ShopperSettings, panel: list[Task], seed: int
) -> Iterator[dict]:
    for task, repetition in shared_out(expert.trajectories, panel):
        if expert.knows == "product":
            yield _by_oracle(env, task, expert.turn_cap)
            continue
        opening = env.reset(task)
        rng = streams.generator("shopper", seed, task.task_id, repetition)
        player = Reader(env.session, expert.habits, rng).act
        yield _row(play(env, task, opening, "reader", player, expert.turn_cap))


def _by_oracle(env: WebshopEnv, task: Task, turn_cap: int) -> dict:
    opening = env.reset(task)
    # The oracle reads the session and ignores the observation.
    return _row(play(env, task, opening, "oracle", lambda _: oracle(env.session), turn_cap))


def _people(
    env: WebshopEnv, expert: ShopperSettings, panels: Panels, counts: Counter
) -> Iterator[dict]:
    trajectories = on_panel(human.read(_recorded(expert), counts), env.assets, panels, counts)
    for trajectory, task in trajectories[: expert.trajectories]:
        opening = env.reset(task)
        player = replayed(as_shown(trajectory.actions, env.session))
        played = play(env, task, opening, "human", player, expert.turn_cap)
        if played.refused:
            counts["left out: an action that this shop does not admit"] += 1
            continue
        if played.row["n_turns"] < len(trajectory.actions):
            counts["cut at expert.turn_cap"] += 1
        elif trajectory.reward is not None and reward_differs(trajectory.reward, env.session):
            counts["reward other than the recorded one: kept"] += 1
        yield _row(played)


def _recorded(expert: ShopperSettings) -> Path:
    return user_path(expert.recorded, "expert.recorded")


def _row(played: Played) -> dict:
    return played.row | {"progress": played.progress}
