"""Measure the steps per second of the native and of the official ALFWorld engine, in one process.

Both engines play the first `--games` games of a folder, with the same `--steps` random commands per
game, and list the admissible commands after every command. The native engine also plays without
this listing. The official engine is not modified. Each timing starts with a newly compiled game,
whose caches are empty. The benchmark requires the extra `alfworld`.
"""

import argparse
import gc
import json
import random
import time
from collections import Counter
from pathlib import Path

from alfworld_parity import Engine, random_walk

from hgrpo.games.alfworld.gamefile import list_games, read_game
from hgrpo.games.alfworld.native import CompiledGame, NativeGame
from hgrpo.games.alfworld.textworld_engine import OfficialGame, require_textworld


def measure(folders: list[Path], steps: int) -> dict:
    """Steps per second of each engine, and the speed-up of the native engine."""
    seconds: Counter[str] = Counter()
    for folder in folders:
        data = read_game(folder)
        native = NativeGame(CompiledGame(data))
        native.reset()
        commands = []
        for command in random_walk(native, random.Random(str(folder)), steps):
            commands.append(command)
            native.step(command)
        seconds["official"] += _seconds(OfficialGame(data), commands, listing=True)
        seconds["native"] += _seconds(NativeGame(CompiledGame(data)), commands, listing=True)
        seconds["bare"] += _seconds(NativeGame(CompiledGame(data)), commands, listing=False)
    played = steps * len(folders)
    return {
        "official_steps_per_second": round(played / seconds["official"], 1),
        "native_steps_per_second": round(played / seconds["native"], 1),
        "native_steps_per_second_without_listing": round(played / seconds["bare"], 1),
        "speed_ratio": round(seconds["official"] / seconds["native"], 1),
    }


def _seconds(engine: Engine, commands: list[str], listing: bool) -> float:
    engine.reset()
    # Disable garbage collection during the timing, because the official engine's heap is large.
    gc.collect()
    gc.freeze()
    began = time.perf_counter()
    for command in commands:
        engine.step(command)
        if listing:
            engine.admissible_commands()
    elapsed = time.perf_counter() - began
    gc.unfreeze()
    return elapsed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of games: <task>/<trial>")
    parser.add_argument("--games", type=int, default=12)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    require_textworld()
    games = list_games(args.folder, Counter())
    print(
        json.dumps(measure([args.folder / game.path for game in games[: args.games]], args.steps))
    )
