"""Measure the cost of generating a large WebShop, and the memory and time of playing in it.

The stage `assets` generates the shop of the laptop study, but with `--products` products, in a
separate process. The times and the peak memory include everything that this stage makes: data
files, catalogue, index, goals and panels. Then a new process opens the shop and plays 100 sessions
as in `webshop.py`. It also times searches for a few words of an instruction and for a whole
instruction. Search times are process time.

Example:
    python benchmarks/webshop_size.py --products 1000000
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml
from webshop import ROOT, RandomShopper, Spent, play, resident

from hgrpo.archive import unpacked
from hgrpo.config.canonical import as_json
from hgrpo.games.panels import read_panels
from hgrpo.games.webshop.env import GOALS, WebshopEnv, open_goals
from hgrpo.games.webshop.shop import CATALOGUE, Shop

SESSIONS, QUERIES = 100, 500
_PARTS = {"catalogue": CATALOGUE, "index": "index", "goals": GOALS}


def main() -> None:
    """Generate the shop, open it, and print all measurements as a JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--products", type=int, default=1_000_000)
    parser.add_argument("--opened", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.opened is not None:
        print(json.dumps(opened(args.opened)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "assets"
        numbers = {"products": args.products} | made(args.products, folder)
        command = [sys.executable, __file__, "--opened", str(folder)]
        numbers |= json.loads(_run(command).splitlines()[-1])
    print(json.dumps(numbers))


def made(products: int, folder: Path) -> dict:
    """Generate a shop in `folder`; return the time, the peak memory and the sizes of files."""
    config = yaml.safe_load((ROOT / "configs/envs/webshop-laptop.yaml").read_bytes())
    config["products"] = {"generate": {"products": products}}
    command = [sys.executable, "-m", "hgrpo.cli.stage", "assets", "--config", as_json(config)]
    began = time.perf_counter()
    _run([*command, "--out", str(folder)])
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    tasks = unpacked(folder / "tasks.tar.gz")
    return {
        "seconds": seconds,
        "process_seconds": used.ru_utime + used.ru_stime,
        "peak_bytes": 1024 * used.ru_maxrss,
        "bytes": {name: _size(tasks / part) for name, part in _PARTS.items()},
    }


def opened(folder: Path) -> dict:
    """Memory of a process that plays in the shop, and times of its searches."""
    panel = read_panels(folder / "panels.json")["train"]
    tasks = unpacked(folder / "tasks.tar.gz")
    rng = random.Random(0)
    before = resident()
    steps, resets = Spent(), Spent()
    for task in rng.sample(panel, SESSIONS):
        play(WebshopEnv(tasks), task, rng, steps, resets)
    after = resident()
    shop, goals = Shop(tasks), open_goals(tasks)
    texts = [goals.goal(int(task.path)).text for task in rng.sample(panel, QUERIES)]
    return {
        "before_bytes": before,
        "after_bytes": after,
        "steps_per_s": steps.per_second,
        "search_words_ms": _percentiles(shop, [RandomShopper(t, rng).query() for t in texts]),
        "search_instruction_ms": _percentiles(shop, texts),
    }


def _percentiles(shop: Shop, queries: list[str]) -> dict[str, float]:
    seconds = []
    for query in queries:
        search = Spent()
        search.call(shop.search, query)
        seconds.append(search.seconds)
    low, high = np.percentile(seconds, [50, 95])
    return {"p50": 1000 * low, "p95": 1000 * high}


def _size(path: Path) -> int:
    return sum(p.stat().st_size for p in [path, *path.rglob("*")] if p.is_file())


def _run(command: list[str]) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, encoding="utf-8", env=environment, cwd=ROOT
    )
    return done.stdout


if __name__ == "__main__":
    main()
