"""Games in the published layout: `<split>/<task>/<trial>/game.tw-pddl` beside `traj_data.json`."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hgrpo.envs.alfworld import pddl
from hgrpo.envs.alfworld.native import CompiledGame
from hgrpo.envs.alfworld.potential import View, potential
from hgrpo.envs.alfworld.settings import TASK_TYPES
from hgrpo.envs.base import Task
from hgrpo.errors import UserError

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
    potential: Callable[[View, bool], float]  # (facts, won) -> potential
    goal: str  # the sentence after "Your task is to: ", with its full stop
    walkthrough: tuple[str, ...]  # commands that win the game; empty if the file has none


_canonical_domain = lru_cache(maxsize=16)(pddl.canonical)


def content_hash(game: dict) -> str:
    """SHA-256 (hex) of what defines a game: domain, grammar and problem.

    The hash ignores the problem's name, the walkthrough and all other keys of the file. Within the
    PDDL it ignores comments, case and spacing.
    """
    problem = _PROBLEM_NAME.sub("( problem _ )", pddl.canonical(game["pddl_problem"]), count=1)
    parts = (_canonical_domain(game["pddl_domain"]), game["grammar"].strip(), problem)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_game(folder: Path) -> dict:
    """Read a folder's game file and check that it holds the three texts of a game.

    Raises:
        UserError: the file is missing, is not a JSON object, lacks one of the texts, has a
            walkthrough that is no list of texts, or says that the game cannot be solved.
    """
    path = folder / GAME_FILE
    data = _read_json(path)
    for key in _TEXTS:
        if key not in data:
            raise UserError(f"{path}: the key {key!r} is missing")
        if not isinstance(data[key], str):
            raise UserError(f"{path}: the key {key!r} must hold text")
    walkthrough = data.get("walkthrough")
    if walkthrough is not None and not _is_texts(walkthrough):
        raise UserError(f"{path}: the key 'walkthrough' must hold a list of commands")
    if data.get("solvable") is False:
        raise UserError(f"{path}: the file says that the game cannot be solved (solvable: false)")
    return data


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def read_task_type(folder: Path) -> str:
    """The task type in a folder's traj_data.json.

    Raises:
        UserError: the file is missing or malformed, or the type is unknown.
    """
    path = folder / TASK_FILE
    data = _read_json(path)
    if "task_type" not in data:
        raise UserError(f"{path}: the key 'task_type' is missing")
    if data["task_type"] not in TASK_TYPES:
        raise UserError(f"{path}: unknown task_type {data['task_type']!r}")
    return data["task_type"]


def _read_json(path: Path) -> dict:
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON, perhaps cut off ({error})") from None
    if not isinstance(data, dict):
        raise UserError(f"{path}: a JSON object was expected, not {type(data).__name__}")
    return data


def compile_game(data: dict, source: object) -> CompiledGame:
    """Compile the content of a game file; `source` names the file in errors.

    Raises:
        UserError: the PDDL or the grammar is malformed, or the game is won at reset.
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


@lru_cache(maxsize=4096)
def load_compiled(folder: Path) -> Game:
    """The game in `folder`, compiled. The process caches the 4096 games that were used last.

    Raises:
        UserError: `read_game`, `read_task_type` or `compile_game` raises one, or the opening text
            states no goal.
    """
    path = folder / GAME_FILE
    data = read_game(folder)
    read_task_type(folder)
    compiled = compile_game(data, path)
    _, lead, goal = compiled.intro.rpartition(GOAL_LEAD)
    if not lead:
        raise UserError(f"{path}: the opening text has no {GOAL_LEAD!r}")
    return Game(
        folder=folder,
        content_hash=content_hash(data),
        compiled=compiled,
        potential=native_potential(compiled),
        goal=goal.strip(),
        walkthrough=tuple(data.get("walkthrough") or ()),
    )


def native_potential(game: CompiledGame) -> Callable[[View, bool], float]:
    """The potential of a game, for facts whose entities are the native engine's integers."""
    names = {n: name for name, n in game.program.vocabulary.predicates.items()}
    fluent = {names[number] for number in game.program.fluent}
    start = game.view(game.start)
    return potential(game.goal_formula, fluent, start, lambda name: game.number.get(name, -1))


def list_games(root: Path) -> tuple[list[Task], dict[str, str]]:
    """The playable games below `root`, sorted by path, and why each other game is left out.

    This function leaves out games that are won at reset. Like the official package, it also leaves
    out tasks with movable receptacles or slicing, folders without a game file, and games that are
    marked unsolvable.

    Raises:
        UserError: `root` is not a folder, a file is malformed, or no game remains.
    """
    if not root.is_dir():
        raise UserError(f"{root}: no such folder of games")
    tasks: list[Task] = []
    skipped: dict[str, str] = {}
    for path in sorted(root.rglob(TASK_FILE)):
        folder = path.parent
        name = folder.relative_to(root).as_posix()
        if reason := _unplayable(folder):
            skipped[name] = reason
        else:
            digest = content_hash(read_game(folder))
            tasks.append(Task(name, name, digest, read_task_type(folder)))
    if not tasks:
        raise UserError(f"{root}: no playable games below this folder")
    return tasks, skipped


def _unplayable(folder: Path) -> str:
    if "movable" in str(folder):
        return "movable receptacles are not supported"
    if "Sliced" in str(folder):
        return "slicing tasks are not supported"
    if not (folder / GAME_FILE).is_file():
        return "no game file"
    if _read_json(folder / GAME_FILE).get("solvable") is False:
        return "marked unsolvable"
    compiled = _compile(read_game(folder), folder / GAME_FILE)
    return "won at reset" if compiled.is_won(compiled.start) else ""
