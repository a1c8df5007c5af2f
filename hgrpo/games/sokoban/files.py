"""Reads and writes files of levels as XSB text, in the dialects of Boxoban, Microban and SOK.

Format: https://www.sokobano.de/wiki/index.php?title=Level_format
"""

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.games.sokoban.distances import distances
from hgrpo.games.sokoban.level import Board, Level
from hgrpo.games.user_path import user_text

_RUN = re.compile(r"(\d{0,3})([ \t#@+$*.\-_pPbB|])")
_ROW = re.compile(rf"({_RUN.pattern})+")
# A board row that may contain unknown symbols. A line such as "#7" is a title, not a row.
_ODD_ROW = re.compile(r"\s*#(?!\s*\d+\s*$).*")
_NOTE = re.compile(r"\s*([A-Za-z][\w -]*):\s*(.+)")


def split_levels(text: str) -> list[tuple[str, str]]:
    """Split a file into (title, XSB text) of each level.

    Any line that is not a row of a board, such as a blank one, ends a level. The title of a level
    is the last line of text above it, unless this line is a note such as `Author: x`. A line
    `Title: x` gives the title of the level above it or, if there is none, of the level below it.
    Levels without a title are numbered from 0. Rows may be run-length encoded (`3#`), and may be
    separated by `|` instead of line breaks.
    """
    levels: list[tuple[str, str]] = []
    title, rows = "", []
    for line in [*text.splitlines(), ""]:
        is_row = _is_row(line, rows)
        if rows and not is_row:
            if "#" in "".join(rows):
                levels.append((title or str(len(levels)), "\n".join(rows)))
                title = ""
            rows = []
        note = _NOTE.fullmatch(line)
        if is_row:
            rows += _RUN.sub(lambda run: run[2] * int(run[1] or 1), line).rstrip().split("|")
        elif note is None:
            title = line.strip(" \t;:=*_-") or title
        elif note[1].lower() == "title" and levels:
            levels[-1] = note[2], levels[-1][1]
        elif note[1].lower() == "title":
            title = note[2]
    return levels


def _is_row(line: str, above: list[str]) -> bool:
    """Whether a line is a row of a board. `above` contains the board's earlier rows."""
    if "#" in line:
        return bool(_ROW.fullmatch(line) or (above and _ODD_ROW.fullmatch(line)))
    if not line.strip(" \t-_"):
        # A line of floor symbols, such as `---`, can also separate levels. It is a row only if it
        # is below the first row of a board and no row above it contains the player.
        return bool(above and line.strip()) and not set("@+pP") & set("".join(above))
    return bool(above) and not line.strip(" \t@+$*.-_")


def write_levels(path: Path, levels: Iterable[tuple[str, str]]) -> None:
    """Write (title, XSB text) pairs to a file."""
    path.write_text("".join(f"; {title}\n{text}\n\n" for title, text in levels), encoding="utf-8")


@lru_cache(maxsize=16)
def _texts(path: Path) -> list[str]:
    return [text for _, text in split_levels(user_text(path))]


def level_text(folder: Path, place: str) -> str:
    """Read the XSB text of a level, given the path of its task, `<file>#<number>`.

    Raises:
        UserError: the level does not exist.
    """
    name, _, number = place.rpartition("#")
    try:
        return _texts(folder / name)[int(number)]
    except (IndexError, ValueError):
        raise UserError(
            f"{folder / name}: level {number} not found; run the assets stage again"
        ) from None


@lru_cache(maxsize=10_000)
def content_hash(text: str) -> str:
    """SHA-256 (hex) of a level's text."""
    return hashlib.sha256(text.encode()).hexdigest()


Compiled = tuple[Level, dict[Board, int]]
_cache: dict[tuple[str, int], Compiled] = {}
_MOST_CACHED = 250_000  # maximum number of boards in all cached tables; about 50 MB


def compiled(text: str, depth: int) -> Compiled:
    """Parse a level and compute its table of distances.

    The most recently used levels are cached: a few thousand small rooms, or one large room.

    Raises:
        TooManyBoardsError: the level has too many boards.
    """
    entry = _cache.get((text, depth))
    if entry is None:
        level = Level(text)
        entry = _cache[text, depth] = level, distances(level, depth)
        boards = sum(len(table) for _, table in _cache.values())
        while boards > _MOST_CACHED and len(_cache) > 1:
            _, table = _cache.pop(next(iter(_cache)))
            boards -= len(table)
    return entry
