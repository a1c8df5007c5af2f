"""Many sessions in one process: they share one shop, and what they leave behind is bounded."""

import gc
import importlib
import pkgutil
import random
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from hgrpo.games import webshop
from hgrpo.games.base import Task
from hgrpo.games.webshop import assets
from hgrpo.games.webshop.env import WebshopEnv
from hgrpo.games.webshop.settings import WebshopSettings
from hgrpo.games.webshop.shop import open_shop

SESSIONS, WARM, TURNS = 500, 200, 8
# Bytes that a session may leave behind.
LEFT = 50


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> tuple[Path, list[Task]]:
    """A generated shop, and its tasks."""
    folder = tmp_path_factory.mktemp("shop")
    config = WebshopSettings(
        name="webshop",
        products={"generate": {"products": 200}},
        panels={"test": 100, "validation": 100},
    )
    return folder, [task for _, task in assets.make(config, 0, folder, Counter())]


def play(env: WebshopEnv, task: Task, rng: random.Random) -> None:
    """Search for words of the instruction, then click on anything, up to a purchase or the cap."""
    words = env.reset(task).goal.split()
    for _ in range(TURNS):
        clicks = env.admissible_commands()
        search = f"search[{' '.join(rng.sample(words, 4))}]"
        if env.step(rng.choice(clicks) if clicks else search).done:
            break


def test_memory_stays_flat_over_thousands_of_sessions(shop):
    folder, tasks = shop
    for number in range(WARM + SESSIONS):
        if number == WARM:
            # Live objects alone: resident memory also moves with what the process did before.
            tracemalloc.start()
        # The same fifty sessions again and again: after them no cache has anything to add.
        play(WebshopEnv(folder), tasks[number % 50], random.Random(number % 50))
    gc.collect()
    growth, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert growth < LEFT * SESSIONS


def test_live_sessions_share_one_catalogue(shop):
    folder, tasks = shop
    rng = random.Random(1)
    live = [WebshopEnv(folder) for _ in range(500)]
    for number, env in enumerate(live):
        play(env, tasks[number % len(tasks)], rng)
    shared = open_shop(folder)
    assert all(env.session.shop is shared for env in live)
    # A product that several sessions look at is one object.
    seen = [env.session.item for env in live if env.session.item is not None]
    assert len(seen) > 100
    assert len({id(item) for item in seen}) == len({item.row for item in seen}) <= 200


def test_every_cache_has_an_end(shop):
    folder, _ = shop
    owners = [open_shop(folder), open_shop(folder).catalogue]
    for module in pkgutil.iter_modules(webshop.__path__, f"{webshop.__name__}."):
        owners.append(importlib.import_module(module.name))
    caches = {
        f"{name} of {owner}": value.cache_info().maxsize
        for owner in owners
        for name, value in vars(owner).items()
        if hasattr(value, "cache_info")
    }
    assert len(caches) >= 5
    assert None not in caches.values(), caches
