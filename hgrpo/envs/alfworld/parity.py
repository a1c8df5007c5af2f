"""Compares two engines on a game, command by command."""

import gc
import multiprocessing
import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

from hgrpo.envs.alfworld.gamefile import load_compiled, read_game
from hgrpo.envs.alfworld.native import CompiledGame, NativeGame
from hgrpo.envs.alfworld.oracle import memoised
from hgrpo.envs.alfworld.problem import in_older_words
from hgrpo.envs.alfworld.textworld_engine import OfficialGame

NONSENSE = (
    "",
    "Look",
    "go to",
    "go to nowhere 1",
    "take",
    "move it to the moon 1",
    "examine agent1",
    "look look",
    "Nothing happens.",
    "open {r}",
)


WALK_STEPS = 100
# The official engine leaks 2 to 3.5 MB per loaded game; only the process's end frees it.
_GAMES_PER_PROCESS = 16


Engine = NativeGame | OfficialGame


@dataclass(frozen=True)
class Mismatch:
    """After `command`, at `step` of a walk, `what` (text, commands or won) differed."""

    game: str
    walk: str
    step: int
    command: str
    what: str
    expected: object
    found: object


@dataclass
class GameReport:
    """The comparison of one game.

    Attributes:
        stock_seconds: time that the untouched official engine took for `stock_steps`.
        native_seconds: time that the native engine took for the same steps.
        native_bare_seconds: as `native_seconds`, but without listing the admissible commands.
    """

    game: str
    steps: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)
    stock_steps: int = 0
    stock_seconds: float = 0.0
    native_seconds: float = 0.0
    native_bare_seconds: float = 0.0


def compare_walk(
    walk: str, commands: Iterable[str], expected: Engine, found: Engine, report: GameReport
) -> None:
    """Play `commands` in both engines from a reset; add steps and differences to `report`.

    The walk ends at the first difference, since later ones could follow from it.
    """
    for step, command in enumerate(chain([""], commands)):
        if step:
            texts = (expected.step(command), found.step(command))
            report.steps += 1
        else:
            texts = (expected.reset(), found.reset())
        rows = [
            ("text", *texts),
            ("commands", expected.admissible_commands(), found.admissible_commands()),
            ("won", expected.won, found.won),
        ]
        for what, left, right in rows:
            if left != right:
                mismatch = Mismatch(report.game, walk, step, command, what, left, right)
                report.mismatches.append(mismatch)
                return


def random_walk(engine: Engine, rng: random.Random, steps: int) -> Iterator[str]:
    """Random admissible commands of `engine`; one in twenty is nonsense.

    Half of the draws leave out "go to" commands, so that walks touch things. Some commands have
    spaces around them, which engines must ignore. Each draw reads the engine's current state.
    """
    for _ in range(steps):
        commands = engine.admissible_commands()
        if rng.random() < 0.05:
            yield rng.choice([*NONSENSE, rng.choice(commands).upper()])
            continue
        if rng.random() < 0.5:
            commands = [c for c in commands if not c.startswith("go to ")]
        yield " " * (rng.random() < 0.05) + rng.choice(commands) + "\t" * (rng.random() < 0.05)


def older_language(data: dict) -> dict:
    """The game in the older language: "put X in/on Y" in place of "move X to Y"."""
    walkthrough = [
        re.sub(r"^move (.*?) to ", r"put \1 in/on ", command)
        for command in data.get("walkthrough") or []
    ]
    return data | {"grammar": in_older_words(data["grammar"]), "walkthrough": walkthrough}


def check_game(folder: Path, steps: int, stock_steps: int, seed: int) -> GameReport:
    """Compare the native engine with the official one on a game, in both languages.

    The cached official engine plays the walkthrough and `steps` random commands per language. The
    untouched one plays the first `stock_steps` of these commands and is timed.
    """
    data = read_game(folder)
    load_compiled(folder)
    report = GameReport(str(folder))
    languages = {"as stored": data}
    if older_language(data)["grammar"] != data["grammar"]:
        languages["older"] = older_language(data)
    for language, content in languages.items():
        native = NativeGame(CompiledGame(content))
        walks = [(f"{language}, walkthrough", content.get("walkthrough") or ())]
        for start in range(0, steps, WALK_STEPS):
            rng = random.Random(f"{seed} {language} {start}")
            length = min(WALK_STEPS, steps - start)
            walks.append((f"{language}, steps {start}", random_walk(native, rng, length)))
        with memoised():
            official = OfficialGame(content)
            for walk, commands in walks:
                compare_walk(walk, commands, official, native, report)
    _time_stock(report, data, stock_steps, seed)
    return report


def check_games(
    folders: Sequence[Path], steps: int, stock_steps: int, seed: int, workers: int = 1
) -> Iterator[GameReport]:
    """Call `check_game` on every folder, in order, in short-lived processes.

    With more than one worker the timings mean little.
    """
    check = partial(check_game, steps=steps, stock_steps=stock_steps, seed=seed)
    spawn = multiprocessing.get_context("spawn")
    batch = _GAMES_PER_PROCESS * workers
    # A new pool per batch: in Python 3.11 a pool that renews its workers can hang.
    for start in range(0, len(folders), batch):
        with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
            yield from pool.map(check, folders[start : start + batch])


def _time_stock(report: GameReport, data: dict, steps: int, seed: int) -> None:
    if not steps:
        return
    native = NativeGame(CompiledGame(data))
    commands: list[str] = []
    native.reset()
    for command in random_walk(native, random.Random(f"{seed} stock"), steps):
        commands.append(command)
        native.step(command)
    stock = OfficialGame(data)
    compare_walk("untouched engine", commands, stock, native, report)
    report.stock_steps = steps
    report.stock_seconds = _seconds(stock, commands, listing=True)
    # Compile the game again, since the comparison has filled its caches.
    report.native_seconds = _seconds(NativeGame(CompiledGame(data)), commands, listing=True)
    report.native_bare_seconds = _seconds(NativeGame(CompiledGame(data)), commands, listing=False)


def _seconds(engine: Engine, commands: list[str], listing: bool) -> float:
    engine.reset()
    # The official engine fills the heap; collecting it must not slow the engine being timed.
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
