"""Sokoban levels by hand, and the settings and panels that tests play."""

from collections import Counter
from pathlib import Path

from hgrpo.games.base import Task
from hgrpo.games.kinds import load
from hgrpo.games.sokoban.env import SokobanEnv
from hgrpo.games.sokoban.files import content_hash, write_levels
from hgrpo.games.sokoban.level import read_level
from hgrpo.games.sokoban.settings import SokobanSettings
from hgrpo.stages.sections import environment_settings

PANELS = {"train": 30, "validation": 6, "test": 9}
# The shortest solution is Right, Right.
LINE = """
######
#@ $.#
######
"""
# Down pushes the box to the wall, from where no push brings it back. Solved by six actions.
CORNER = """
#####
# @.#
# $ #
#   #
#####
"""
# Two boxes, of which one starts on its target.
PAIR = """
#######
#@ *  #
# $ . #
#     #
#######
"""


def world(**options) -> SokobanSettings:
    """Settings with small panels; `options` replace keys."""
    return environment_settings({"name": "sokoban", "panels": PANELS} | options, "test")


def panels(settings: SokobanSettings, out: Path, seed: int = 0) -> dict[str, list[Task]]:
    """Make the levels below `out`."""
    tasks: dict[str, list[Task]] = {}
    for split, task in load("sokoban").make_tasks(settings, seed, out, Counter()):
        tasks.setdefault(split, []).append(task)
    return tasks


def at_level(folder: Path, text: str, **options) -> SokobanEnv:
    """An environment at the start of one level, whose file is written to `folder`."""
    env = SokobanEnv(folder, world(**options))
    env.reset(level_task(folder, text))
    return env


def level_task(folder: Path, text: str) -> Task:
    """A task of one level, whose file is written to `folder`."""
    text = read_level(text).text
    name = f"{content_hash(text)[:16]}.xsb"  # files are cached by their paths
    write_levels(folder / name, [("one", text)])
    return Task("one", f"{name}#0", content_hash(text), "x")
