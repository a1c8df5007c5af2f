"""Compares two engines on a game, command by command."""

import gc
import multiprocessing
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from hgrpo.envs.alfworld.gamefile import load_compiled, read_game
from hgrpo.envs.alfworld.native import CompiledGame, NativeGame
from hgrpo.envs.alfworld.oracle import memoised
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
# The language before alfworld 0.4, and of the published json_2.1.1 games.
_OLDER = (
    ("You arrive at {r.name}.", "You arrive at {lend.name}."),
    ('"move {o} to {r}"', '"put {o} in/on {r}"'),
    ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
)


class Engine(Protocol):
    """The interface of both engines."""

    won: bool

    def reset(self) -> str: ...

    def step(self, command: str) -> str: ...

    def admissible_commands(self) -> list[str]: ...


@dataclass(frozen=True)
class Mismatch:
    """After `command`, at this `step` of a walk, `what` (text, commands or won) differed."""

    game: str
    walk: str
    step: int
    command: str
    what: str
    expected: object
    found: object


@dataclass
class Tally:
    """How many steps were compared, and what differed."""

    steps: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)


def compare_walk(
    game: str,
    walk: str,
    commands: Iterator[str],
    expected: Engine,
    found: Engine,
    tally: Tally,
) -> None:
    """Reset both engines, play `commands` in both, and add differences to `tally`.

    The walk ends at the first difference, since later ones could follow from it.
    """
    texts = (expected.reset(), found.reset())
    step, command = 0, ""
    while True:
        rows = [
            ("text", *texts),
            ("commands", expected.admissible_commands(), found.admissible_commands()),
            ("won", expected.won, found.won),
        ]
        for what, left, right in rows:
            if left != right:
                tally.mismatches.append(Mismatch(game, walk, step, command, what, left, right))
                return
        command = next(commands, None)
        if command is None:
            return
        step += 1
        texts = (expected.step(command), found.step(command))
        tally.steps += 1


def random_walk(engine: Engine, rng: random.Random, steps: int) -> Iterator[str]:
    """Random admissible commands of `engine`; one in twenty is nonsense.

    Half of the draws leave out commands that only go elsewhere, so that walks touch things. Some
    commands have spaces around them, which engines must ignore. The generator reads the engine's
    state each time it is asked for a command.
    """
    for _ in range(steps):
        commands = engine.admissible_commands()
        if rng.random() < 0.05:
            yield rng.choice([*NONSENSE, rng.choice(commands).upper()])
            continue
        if rng.random() < 0.5:
            commands = [c for c in commands if not c.startswith("go to ")]
        yield (" " * (rng.random() < 0.05) + rng.choice(commands) + "\t" * (rng.random() < 0.05))


def older_language(data: dict) -> dict:
    """The game in the older language: "put X in/on Y" in place of "move X to Y"."""
    grammar = data["grammar"]
    for new, old in _OLDER:
        grammar = grammar.replace(new, old)
    walkthrough = [
        command.replace("move ", "put ", 1).replace(" to ", " in/on ", 1)
        if command.startswith("move ")
        else command
        for command in data.get("walkthrough") or []
    ]
    return data | {"grammar": grammar, "walkthrough": walkthrough}


@dataclass
class GameReport:
    """The comparison of one game; seconds are those that each engine took for `stock_steps`."""

    game: str
    tally: Tally
    stock_steps: int = 0
    stock_seconds: float = 0.0
    native_seconds: float = 0.0
    native_bare_seconds: float = 0.0


def check_game(folder: Path, steps: int, stock_steps: int, seed: int) -> GameReport:
    """Compare the native engine with the official one on a game, in both languages.

    The cached official engine plays the walkthrough and `steps` random commands per language. The
    untouched one plays the first `stock_steps` of them, on the clock.
    """
    data = read_game(folder)
    load_compiled(folder)
    report = GameReport(str(folder), Tally())
    languages = {"as stored": data}
    if older_language(data)["grammar"] != data["grammar"]:
        languages["older"] = older_language(data)
    for language, content in languages.items():
        native = NativeGame(CompiledGame(content))
        walks = [(f"{language}, walkthrough", iter(content.get("walkthrough") or ()))]
        for start in range(0, steps, WALK_STEPS):
            rng = random.Random(f"{seed} {language} {start}")
            length = min(WALK_STEPS, steps - start)
            walks.append((f"{language}, steps {start}", random_walk(native, rng, length)))
        with memoised():
            official = OfficialGame(content)
            for walk, commands in walks:
                compare_walk(report.game, walk, commands, official, native, report.tally)
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
    """Compare with the untouched official engine, and time both on the same commands."""
    if not steps:
        return
    native = NativeGame(CompiledGame(data))
    commands: list[str] = []
    native.reset()
    for command in random_walk(native, random.Random(f"{seed} stock"), steps):
        commands.append(command)
        native.step(command)
    stock = OfficialGame(data)
    compare_walk(report.game, "untouched engine", iter(commands), stock, native, report.tally)
    report.stock_steps = steps
    report.stock_seconds = _seconds(stock, commands, listing=True)
    # Compiled afresh, so that no cache of the comparison speeds it up.
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
