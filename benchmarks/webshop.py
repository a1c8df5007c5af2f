"""Measure steps, sessions, search and memory of our WebShop engine, in one process on one thread.

The shop has 1,000 generated products, the same as in `tests/data/webshop_rankings.json`. A random
policy plays the sessions. In one of ten turns on average, or if nothing can be clicked, it searches
for a few words of the instruction. In all other turns, it clicks on a random element. A session
ends with a purchase or after 15 turns. A step includes everything that training requires: action,
rendered page, progress, and list of possible clicks. A reset also checks the task's hash and lists
the clicks. Times are process time, without the time of the random policy. The caches of products
and searches are empty at the start, and nearly every search is new.

The original WebShop requires Java and its own data, so it is not run. Its measurements are
constants in this file.
"""

import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from hgrpo.games.base import Task
from hgrpo.games.webshop import assets
from hgrpo.games.webshop.env import WebshopEnv
from hgrpo.games.webshop.settings import WebshopSettings
from hgrpo.games.webshop.shop import Shop, open_shop

ROOT = Path(__file__).resolve().parent.parent
RANKINGS = ROOT / "tests/data/webshop_rankings.json"
# Lowest and highest speeds that were measured for the original WebShop (Yao et al. 2022) with 1,000
# products.
ORIGINAL_STEPS_PER_S = (20, 38)
ORIGINAL_RESET_MS = (6, 8)

TURNS, SESSIONS, REPEATS, MANY = 15, 1_000, 5, 10_000
_SEARCHES = 0.1
_WORDS = (1, 5)
_MB = 1e6


def measure(folder: Path) -> dict:
    """Return all measurements. The shop is written to `folder`."""
    stored = json.loads(RANKINGS.read_bytes())["generated"]
    config = WebshopSettings(
        name="webshop",
        products={"generate": stored["config"]},
        panels={"test": 100, "validation": 100},
    )
    tasks = [task for _, task in assets.make(config, stored["seed"], folder, Counter())]
    rng = random.Random(0)
    held = memory(folder, tasks, rng)
    open_shop.cache_clear()
    rates = [rate(folder, rng.sample(tasks, SESSIONS), rng) for _ in range(REPEATS)]
    steps, resets = (median(column) for column in zip(*rates, strict=True))
    return {
        "products": len(open_shop(folder).catalogue),
        "sessions": SESSIONS * REPEATS,
        "steps_per_s": steps,
        "steps_per_s_range": [min(rates)[0], max(rates)[0]],
        "reset_ms": 1000 / resets,
        "original_steps_per_s": ORIGINAL_STEPS_PER_S,
        "original_reset_ms": ORIGINAL_RESET_MS,
        "ratio": steps / max(ORIGINAL_STEPS_PER_S),
        "search": against_lucene(Shop(folder), stored["rankings"]),
        "memory": held,
    }


class RandomShopper:
    """Random policy that searches for words of the instruction and clicks on random elements.

    Args:
        goal: the instruction.
        buys: whether the policy may click on "Buy Now". If not, every session lasts until its turn
            limit.
    """

    def __init__(self, goal: str, rng: random.Random, buys: bool = True) -> None:
        self._words = re.findall(r"[^\s,\[\]]+", goal)
        self._rng = rng
        self._buys = buys

    def act(self, clicks: Sequence[str]) -> str:
        """Choose the next action: a search, or one of the possible `clicks`."""
        if not self._buys:
            clicks = [click for click in clicks if click != "click[buy now]"]
        if clicks and self._rng.random() >= _SEARCHES:
            return self._rng.choice(clicks)
        return f"search[{self.query()}]"

    def query(self) -> str:
        """A few of the instruction's words, in any order."""
        count = min(self._rng.randint(*_WORDS), len(self._words))
        return " ".join(self._rng.sample(self._words, count))


@dataclass
class Spent:
    """Number of calls of one kind, and their total process time."""

    calls: int = 0
    seconds: float = 0.0

    def call(self, work: Callable, *arguments: object) -> Any:
        """Call `work`, and add one call and its process time."""
        began = time.process_time()
        result = work(*arguments)
        self.seconds += time.process_time() - began
        self.calls += 1
        return result

    @property
    def per_second(self) -> float:
        """Calls per second."""
        return self.calls / self.seconds


def play(
    env: WebshopEnv, task: Task, rng: random.Random, steps: Spent, resets: Spent, buys: bool = True
) -> None:
    """Play one session with the random policy."""

    def reset() -> tuple[str, list[str]]:
        return env.reset(task).goal, env.admissible_commands()

    def step(action: str) -> tuple[bool, list[str]]:
        return env.step(action).done, env.admissible_commands()

    goal, clicks = resets.call(reset)
    shopper = RandomShopper(goal, rng, buys)
    for _ in range(TURNS):
        done, clicks = steps.call(step, shopper.act(clicks))
        if done:
            break


def rate(folder: Path, tasks: Sequence[Task], rng: random.Random) -> tuple[float, float]:
    """Play a session for each task; return steps per second and resets per second."""
    steps, resets = Spent(), Spent()
    for task in tasks:
        play(WebshopEnv(folder), task, rng, steps, resets)
    return steps.per_second, resets.per_second


def against_lucene(shop: Shop, rankings: list) -> dict:
    """Compare our search results with Lucene's rankings for the same queries.

    Returns the mean overlap of the first ten results, the share of queries with the same first
    result, and the median time of a search in milliseconds.
    """
    overlaps, firsts, seconds = [], [], []
    for query, hits in rankings:
        began = time.process_time()
        rows = shop.search(query)
        seconds.append(time.process_time() - began)
        ours = [shop.item(row).product.asin for row in rows[:10]]
        theirs = [asin for asin, _ in hits]
        overlaps.append(len(set(ours) & set(theirs)) / len(theirs) if theirs else float(not ours))
        firsts.append(ours[:1] == theirs[:1])
    return {
        "queries": len(rankings),
        "top_10_overlap": mean(overlaps),
        "same_first": sum(firsts) / len(firsts),
        "p50_ms": 1000 * median(seconds),
    }


def memory(folder: Path, tasks: Sequence[Task], rng: random.Random) -> dict:
    """Measure the resident memory of sequential and of concurrent sessions, `MANY` of each.

    Each concurrent session has played 15 turns without a purchase.
    """
    for number in range(MANY):
        play(WebshopEnv(folder), rng.choice(tasks), rng, Spent(), Spent())
        if number == MANY // 10 - 1:
            early = sum(resident())
    after = sum(resident())
    live = [WebshopEnv(folder) for _ in range(MANY)]
    for env in live:
        play(env, rng.choice(tasks), rng, Spent(), Spent(), buys=False)
    return {
        "sessions": MANY,
        "after_a_tenth_mb": early / _MB,
        "after_all_mb": after / _MB,
        "bytes_per_live_session": (sum(resident()) - after) / len(live),
    }


def resident() -> tuple[int, int]:
    """Resident bytes of this process: anonymous memory, and files that are mapped into memory."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    private, files = (
        1024 * int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) for name in ("RssAnon", "RssFile")
    )
    return private, files


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(measure(Path(scratch))))
