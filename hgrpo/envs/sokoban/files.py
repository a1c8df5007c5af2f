"""Level files: many levels of XSB text, each below a line `; title`, as Boxoban writes them."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from hgrpo.envs.sokoban.distances import distances
from hgrpo.envs.sokoban.level import Board, Level
from hgrpo.errors import UserError


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
    path.write_text("".join(f"; {title}\n{text}\n\n" for title, text in levels), encoding="utf-8")


def read_text(path: Path) -> str:
    """A level file's text. Raise UserError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
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


@lru_cache(maxsize=10_000)
def content_hash(text: str) -> str:
    """SHA-256 (hex) of a level's text."""
    return hashlib.sha256(text.encode()).hexdigest()


Compiled = tuple[Level, dict[Board, int]]
_kept: dict[tuple[str, int], Compiled] = {}
_MOST_KEPT = 250_000  # boards in all; about 50 MB


def compiled(text: str, depth: int) -> Compiled:
    """A level with its table of distances.

    The tables of the latest levels are kept, some thousand of small rooms or one of a large room.

    Raises:
        TooManyBoardsError: the level has too many boards.
    """
    found = _kept.get((text, depth))
    if found is None:
        level = Level(text)
        found = _kept[text, depth] = level, distances(level, depth)
        boards = sum(len(table) for _, table in _kept.values())
        while boards > _MOST_KEPT and len(_kept) > 1:
            _, table = _kept.pop(next(iter(_kept)))
            boards -= len(table)
    return found
