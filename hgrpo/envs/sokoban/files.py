"""Level files: many levels of XSB text, each below a line `; title`, as Boxoban writes them."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from hgrpo.envs.sokoban.distances import distances
from hgrpo.envs.sokoban.level import Board, Level
from hgrpo.errors import UserError

_SYMBOLS = set("# .$*@+-_")


def split_levels(text: str) -> list[tuple[str, str]]:
    """The (title, XSB text) of every level of a file.

    A line that begins with `;` is the title of the level below it. Levels without one are numbered
    from 0. A blank line ends a level.
    """
    found: list[tuple[str, str]] = []
    title, lines = "", []

    def close() -> None:
        if lines:
            found.append((title or str(len(found)), "\n".join(lines)))
            lines.clear()

    for line in text.splitlines():
        if line.startswith(";"):
            close()
            title = line[1:].strip()
        elif line.strip():
            lines.append(line.rstrip())
        else:
            close()
            title = ""
    close()
    return found


def write_levels(path: Path, levels: Iterable[tuple[str, str]]) -> None:
    """Write (title, XSB text) to a file."""
    path.write_text("".join(f"; {title}\n{text}\n\n" for title, text in levels))


def read_text(path: Path) -> str:
    """A level file's text. Raise UserError if it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a level file ({error})") from None


@lru_cache(maxsize=16)
def _texts(path: Path) -> list[str]:
    return [text for _, text in split_levels(read_text(path))]


def level_text(folder: Path, place: str) -> str:
    """XSB text of the level at a task's path, `<file>#<number>`.

    Raises:
        UserError: there is no such level.
    """
    name, _, number = place.rpartition("#")
    try:
        return _texts(folder / name)[int(number)]
    except (IndexError, ValueError):
        raise UserError(f"{folder / name}: no level {number}; run the assets stage again") from None


def content_hash(text: str) -> str:
    """SHA-256 (hex) of a level's text."""
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=128)
def compiled(text: str, depth: int) -> tuple[Level, dict[Board, int]]:
    """A level with its table of distances; the tables of the last levels are kept."""
    level = Level(text)
    return level, distances(level, depth)
