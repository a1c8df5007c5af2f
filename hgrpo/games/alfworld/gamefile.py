"""Reads games in the published layout `<split>/<task>/<trial>/{game.tw-pddl,traj_data.json}`."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hgrpo.errors import UserError, one_line
from hgrpo.games.alfworld import pddl
from hgrpo.games.alfworld.native import CompiledGame
from hgrpo.games.alfworld.potential import View, potential
from hgrpo.games.alfworld.settings import TASK_TYPES
from hgrpo.games.base import Task
from hgrpo.games.panels import leave_out
from hgrpo.games.user_path import files_below

GAME_FILE = "game.tw-pddl"
TASK_FILE = "traj_data.json"
GOAL_LEAD = "Your task is to: "
_TEXTS = ("pddl_domain", "grammar", "pddl_problem")
_PROBLEM_NAME = re.compile(r"\( problem [^ ()]+ \)")


@dataclass(frozen=True)
class Game:
    """A game that has been read, checked and compiled."""

    folder: Path
    content_hash: str
    compiled: CompiledGame
    potential: Callable[[View, bool], float]  # (facts, whether the game is won) -> potential
    goal: str  # the sentence after "Your task is to: ", including its full stop
    walkthrough: tuple[str, ...]  # commands that win the game; empty if the file has none


_canonical_domain = lru_cache(maxsize=16)(pddl.canonical)


def content_hash(game: dict) -> str:
    """SHA-256 (hex) of a game's domain, grammar and problem.

    The hash ignores other keys of the file (such as the walkthrough), the name of the problem, and
    comments, case and spacing in the PDDL.
    """
    problem = _PROBLEM_NAME.sub("( problem _ )", pddl.canonical(game["pddl_problem"]), count=1)
    parts = (_canonical_domain(game["pddl_domain"]), game["grammar"].strip(), problem)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_game(folder: Path) -> dict:
    """Read the game file in a folder, and check that it has a domain, a grammar and a problem.

    Raises:
        UserError: the file is missing or is not a JSON object, or one of these texts is missing.
    """
    path = folder / GAME_FILE
    data = _read_json(path)
    for key in _TEXTS:
        if not isinstance(data.get(key), str):
            raise UserError(f"{path}: `{key}` must be a string")
    return data


def read_walkthrough(data: dict, source: object) -> tuple[str, ...]:
    """Return a game's walkthrough, or () if there is none. `source` is named in error messages.

    Raises:
        UserError: the walkthrough is not a list of strings.
    """
    walkthrough = [] if data.get("walkthrough") is None else data["walkthrough"]
    if not isinstance(walkthrough, list) or not all(isinstance(text, str) for text in walkthrough):
        raise UserError(f"{source}: `walkthrough` must be a list of commands")
    return tuple(walkthrough)


def _read_json(path: Path) -> dict:
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: invalid or truncated JSON ({error})") from None
    if not isinstance(data, dict):
        raise UserError(f"{path}: expected a JSON object, not {type(data).__name__}")
    return data


def compile_game(data: dict, source: object) -> CompiledGame:
    """Compile the content of a game file. `source` is named in error messages.

    Raises:
        UserError: the PDDL or the grammar is malformed, or the game is already won at reset.
    """
    compiled = _compile(data, source)
    if compiled.is_won(compiled.start):
        raise UserError(f"{source}: the game is already won at reset")
    return compiled


def _compile(data: dict, source: object) -> CompiledGame:
    try:
        return CompiledGame(data)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None
    except RecursionError:
        raise UserError(f"{source}: conditions or effects are nested too deeply") from None
    except (LookupError, TypeError, ValueError) as error:
        kind = type(error).__name__
        raise UserError(f"{source}: malformed ({kind}: {one_line(error)})") from None


@lru_cache(maxsize=4096)
def load_compiled(folder: Path) -> Game:
    """Load and compile the game in `folder`; the 4096 most recently used games are cached.

    Raises:
        UserError: as in `read_game` and `compile_game`; also if the opening text contains no goal,
            or the file marks the game as unsolvable.
    """
    path = folder / GAME_FILE
    data = read_game(folder)
    walkthrough = read_walkthrough(data, path)
    if data.get("solvable") is False:
        raise UserError(f"{path}: the game is marked as unsolvable (solvable: false)")
    compiled = compile_game(data, path)
    _, lead, goal = compiled.intro.rpartition(GOAL_LEAD)
    if not lead:
        raise UserError(f"{path}: the opening text does not contain {GOAL_LEAD!r}")
    return Game(
        folder=folder,
        content_hash=content_hash(data),
        compiled=compiled,
        potential=native_potential(compiled),
        goal=goal.strip(),
        walkthrough=walkthrough,
    )


def native_potential(game: CompiledGame) -> Callable[[View, bool], float]:
    """Return a game's potential, a function of (native engine's facts, whether the game is won)."""
    names = {n: name for name, n in game.program.vocabulary.predicates.items()}
    fluent = {names[number] for number in game.program.fluent}
    start = game.view(game.start)
    return potential(game.goal_formula, fluent, start, lambda name: game.number.get(name, -1))


def list_games(root: Path, counts: Counter[str]) -> list[Task]:
    """List the playable games in `root` and its subfolders, sorted by path.

    As in `AlfredTWEnv.collect_game_files` of alfworld 0.4.2, a game is playable if its path
    mentions neither a movable receptacle nor slicing, its task type is one of the six, and its game
    file has `solvable: true`. In addition, games that are won at reset and malformed files are
    excluded.

    Args:
        counts: maps a reason to the number of excluded games; updated in place.

    Raises:
        UserError: `root` is not a folder, or no game remains.
    """
    if not root.is_dir():
        raise UserError(f"{root}: folder of games not found")
    tasks: list[Task] = []
    for path, file in files_below(root):
        if path.name != TASK_FILE:
            continue
        try:
            task = _task(path.parent, Path(file).parent.as_posix())
        except UserError as error:
            leave_out(counts, "game", error, root)
            continue
        if isinstance(task, Task):
            tasks.append(task)
        else:
            counts[task] += 1
    if not tasks:
        raise UserError(f"{root}: contains no playable games")
    return tasks


def _task(folder: Path, name: str) -> Task | str:
    """Return the task in `folder`, or the reason for its exclusion. `name` is the relative path."""
    if "movable" in name:
        return "movable receptacles are not supported"
    if "Sliced" in name:
        return "slicing tasks are not supported"
    kind = _read_json(folder / TASK_FILE).get("task_type")
    if kind not in TASK_TYPES:
        raise UserError(f"{folder / TASK_FILE}: unknown task_type {kind!r}")
    if not (folder / GAME_FILE).is_file():
        return "no game file"
    game = read_game(folder)
    if not game.get("solvable"):
        return "marked unsolvable" if "solvable" in game else "not marked as solvable"
    compiled = _compile(game, folder / GAME_FILE)
    if compiled.is_won(compiled.start):
        return "won at reset"
    return Task(name, name, content_hash(game), kind)
