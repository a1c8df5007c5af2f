"""Check the native ALFWorld engine against the official one on a folder of games.

Both engines play each game's walkthrough and random walks, in the language of the file and in the
older language ("put X in/on Y"). After every command, both engines must return the same feedback,
admissible commands and won flag. To save time, caches are added to the official engine. At the end,
both engines play --stock-steps more commands without these caches. The check requires the extra
`alfworld`.

Example:
  python benchmarks/alfworld_parity.py ~/alfworld/json_2.1.1/valid_seen --stock-steps 20
"""

import argparse
import copy
import multiprocessing
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from unittest.mock import patch

from tqdm import tqdm

from hgrpo.command import run
from hgrpo.games.alfworld.gamefile import list_games, load_compiled, read_game
from hgrpo.games.alfworld.generator import in_older_words
from hgrpo.games.alfworld.native import CompiledGame, NativeGame
from hgrpo.games.alfworld.textworld_engine import OfficialGame, require_textworld

_NONSENSE = ("", "Look", "go to", "go to nowhere 1", "take", "move it to the moon 1")
_NONSENSE += ("examine agent1", "look look", "Nothing happens.", "open {r}")
_WALK_STEPS = 100
# The official engine leaks 2 to 3.5 MB per loaded game. The memory is freed when the process ends.
_GAMES_PER_PROCESS = 16
_SHOWN = 5

Engine = NativeGame | OfficialGame


@dataclass(frozen=True)
class Mismatch:
    """A difference between the outputs of the two engines after `command`.

    `what` is the output that differs: text, commands or won. `step` is the position of the command
    in the walk.
    """

    game: str
    walk: str
    step: int
    command: str
    what: str
    expected: object
    native: object


@dataclass
class GameReport:
    """Result of the comparison of both engines on one game."""

    game: str
    steps: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)


def compare_walk(
    walk: str, commands: Iterable[str], expected: Engine, native: Engine, report: GameReport
) -> None:
    """Reset both engines and play `commands` in both; add steps and differences to `report`.

    The walk ends at the first difference, because one difference can cause others.
    """
    for step, command in enumerate(chain([""], commands)):
        answers = []
        for engine in (expected, native):
            text = engine.step(command) if step else engine.reset()
            answers.append((text, engine.admissible_commands(), engine.won))
        report.steps += step > 0
        for what, left, right in zip(("text", "commands", "won"), *answers, strict=True):
            if left != right:
                mismatch = Mismatch(report.game, walk, step, command, what, left, right)
                report.mismatches.append(mismatch)
                return


def random_walk(engine: Engine, rng: random.Random, steps: int) -> Iterator[str]:
    """Yield random commands: most are admissible in `engine`, about one in twenty is nonsense.

    Half of the time, commands that begin with "go to" are excluded, so that more commands interact
    with objects. Some commands have leading or trailing white space, which both engines must
    ignore. The caller must play each command before drawing the next.
    """
    for _ in range(steps):
        commands = engine.admissible_commands()
        if rng.random() < 0.05:
            yield rng.choice([*_NONSENSE, rng.choice(commands).upper()])
            continue
        if rng.random() < 0.5:
            commands = [c for c in commands if not c.startswith("go to ")]
        yield " " * (rng.random() < 0.05) + rng.choice(commands) + "\t" * (rng.random() < 0.05)


def older_language(data: dict) -> dict:
    """The game in the older language, with "put X in/on Y" instead of "move X to Y"."""
    walkthrough = [
        re.sub(r"^move (.*?) to ", r"put \1 in/on ", command)
        for command in data.get("walkthrough") or []
    ]
    return data | {"grammar": in_older_words(data["grammar"]), "walkthrough": walkthrough}


def check_game(folder: Path, steps: int, stock_steps: int, seed: int) -> GameReport:
    """Compare the native engine with the official one on a game, in both languages.

    In each language, both engines play the walkthrough and `steps` random commands, with caches
    added to the official engine. In the language of the file, both engines then play `stock_steps`
    more random commands without these caches.
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
        for start in range(0, steps, _WALK_STEPS):
            rng = random.Random(f"{seed} {language} {start}")
            length = min(_WALK_STEPS, steps - start)
            walks.append((f"{language}, steps {start}", random_walk(native, rng, length)))
        with memoised():
            official = OfficialGame(content)
            for walk, commands in walks:
                compare_walk(walk, commands, official, native, report)
    if stock_steps:
        native = NativeGame(CompiledGame(data))
        commands = random_walk(native, random.Random(f"{seed} stock"), stock_steps)
        compare_walk("untouched engine", commands, OfficialGame(data), native, report)
    return report


def check_games(
    folders: Sequence[Path], steps: int, stock_steps: int, seed: int, workers: int = 1
) -> Iterator[GameReport]:
    """Yield the report of every folder, in order."""
    check = partial(check_game, steps=steps, stock_steps=stock_steps, seed=seed)
    spawn = multiprocessing.get_context("spawn")
    batch = _GAMES_PER_PROCESS * workers
    # Start a new pool per batch, because pools with `max_tasks_per_child` can hang in Python 3.11.
    for start in range(0, len(folders), batch):
        with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
            yield from pool.map(check, folders[start : start + batch])


@contextmanager
def memoised() -> Iterator[None]:
    """Context manager that adds caches to the official engine, in this process.

    Inside the block, the engine caches its parsed text and its translations of PDDL, and makes
    shallow instead of deep copies of grammar symbols.
    """
    require_textworld()
    import fast_downward
    from textworld.envs.pddl import logic, textgen
    from textworld.logic import Rule

    parse_symbols = lru_cache(maxsize=4096)(textgen._parse_and_convert)
    parse_query = lru_cache(maxsize=4096)(Rule.parse_conjunctive_query)

    def fresh_symbols(text: str, rule_name: str = "symbols", trace: bool = False) -> list:
        return _shallow(parse_symbols(text, rule_name=rule_name))

    with (
        patch.multiple(textgen, _parse_and_convert=fresh_symbols, deepcopy=_shallow),
        patch.object(logic, "_parse_and_convert", lru_cache(maxsize=8)(logic._parse_and_convert)),
        patch.object(Rule, "parse_conjunctive_query", parse_query),
        patch.object(fast_downward, "pddl2sas", lru_cache(maxsize=4)(fast_downward.pddl2sas)),
    ):
        yield


def _shallow(value: object) -> object:
    if isinstance(value, list):
        return [_shallow(item) for item in value]
    if isinstance(value, dict):
        return dict(value)
    copied = copy.copy(value)
    for part in ("symbol", "expression"):
        inner = copied.__dict__.get(part)
        if hasattr(inner, "context"):
            setattr(copied, part, _shallow(inner))
    return copied


def main() -> None:
    """Check every game and print the totals; exit with status 1 on a mismatch."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of games: <split>/<task>/<trial>")
    parser.add_argument("--steps", type=int, default=200, help="random steps per game and language")
    parser.add_argument(
        "--stock-steps",
        type=int,
        default=10,
        help="steps per game in the official engine without cache",
    )
    parser.add_argument("--games", type=int, help="check only the first games")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    require_textworld()
    tasks = list_games(args.folder, Counter())
    folders = [args.folder / task.path for task in tasks[: args.games]]
    reports = []
    checks = check_games(folders, args.steps, args.stock_steps, args.seed)
    bar = tqdm(checks, total=len(folders), unit="game", disable=None)
    for report in bar:
        reports.append(report)
        bar.set_postfix(mismatches=sum(len(r.mismatches) for r in reports))
    mismatches = [mismatch for report in reports for mismatch in report.mismatches]
    for mismatch in mismatches[:_SHOWN]:
        print(f"mismatch in {mismatch.game}, {mismatch.walk}, step {mismatch.step}")
        print(f"  after {mismatch.command!r}, {mismatch.what}:")
        print(f"  official {mismatch.expected!r}\n  native   {mismatch.native!r}")
    steps = sum(report.steps for report in reports)
    print(f"games: {len(reports)}\nsteps: {steps}\nmismatches: {len(mismatches)}")
    if mismatches:
        sys.exit(1)


if __name__ == "__main__":
    run(main)
