"""A level: its rules, its XSB text, and its eight symmetric forms.

XSB is the common text of Sokoban levels: `#` wall, ` ` floor, `.` target, `$` box, `*` box on
target, `@` player, `+` player on target. `-` and `_` also stand for floor, and the letters of the
SOK format for player and boxes. A cell is an integer, row * columns + column. A board is (player's
cell, cells of the boxes in ascending order).
"""

import textwrap
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile
from operator import not_

ACTIONS = ("Up", "Down", "Left", "Right")
Boxes = tuple[int, ...]
Board = tuple[int, Boxes]

# https://www.sokobano.de/wiki/index.php?title=Sok_format
_ALIASES = str.maketrans({"-": " ", "_": " ", "p": "@", "P": "+", "b": "$", "B": "*"})
_BOXES, _TARGETS, _PLAYERS = "$*", ".*+", "@+"


class LevelError(ValueError):
    """A text is not a level; the message names what is wrong and its value."""


@dataclass(frozen=True)
class Level:
    """The first board of a game and what no action changes.

    `text` is XSB, in rows of equal length. Its border is wall, and so is all floor that the player
    could not reach if there were no boxes.
    """

    text: str

    @cached_property
    def columns(self) -> int:
        return self.text.index("\n")

    @cached_property
    def rows(self) -> int:
        return self.text.count("\n") + 1

    @cached_property
    def cells(self) -> str:
        """The symbols of all cells, row by row."""
        return self.text.replace("\n", "")

    @cached_property
    def free(self) -> bytes:
        """1 for each cell that is no wall, else 0."""
        return bytes(symbol != "#" for symbol in self.cells)

    @cached_property
    def targets(self) -> frozenset[int]:
        return frozenset(i for i, symbol in enumerate(self.cells) if symbol in _TARGETS)

    @cached_property
    def start(self) -> Board:
        cells = self.cells
        player = next(i for i, symbol in enumerate(cells) if symbol in _PLAYERS)
        return player, tuple(i for i, symbol in enumerate(cells) if symbol in _BOXES)

    @cached_property
    def deltas(self) -> tuple[int, int, int, int]:
        """Change of the player's cell by each of `ACTIONS`."""
        return -self.columns, self.columns, -1, 1

    def move(self, player: int, boxes: Boxes, delta: int) -> Board:
        """The board after an action: push, else walk, else nothing happens."""
        to = player + delta
        if to in boxes:
            beyond = to + delta
            if beyond in boxes or not self.free[beyond]:
                return player, boxes
            if len(boxes) == 1:
                return to, (beyond,)
            return to, tuple(sorted(beyond if box == to else box for box in boxes))
        return (to, boxes) if self.free[to] else (player, boxes)

    def placed(self, boxes: Boxes) -> int:
        """Number of boxes on targets."""
        return sum(box in self.targets for box in boxes)


def read_level(text: str) -> Level:
    """Read one level of XSB text, without blank rows and columns around it.

    Floor out of the player's reach becomes wall, and so do boxes on targets there, which other
    programs show as decoration.

    Raises:
        LevelError: a symbol is unknown, there is not exactly one player, boxes and targets differ
            in number, all boxes stand on targets, or the wall around the player is open.
    """
    lines = textwrap.dedent(text.expandtabs().translate(_ALIASES)).rstrip().split("\n")
    rows = [line.rstrip() for line in dropwhile(not_, lines)]
    width = max(map(len, rows), default=0)
    rows = [row.ljust(width) for row in rows]
    unknown = sorted(set("".join(rows)) - set("# .$*@+"))
    if unknown:
        raise LevelError(f"symbols: {''.join(unknown)!r} is no symbol of XSB")
    players = sum(row.count(symbol) for row in rows for symbol in _PLAYERS)
    if players != 1:
        raise LevelError(f"player: {players} found, exactly one '@' or '+' was expected")
    rows = _walled(rows)
    count = Counter("".join(rows))
    boxes, targets = (sum(count[symbol] for symbol in kind) for kind in (_BOXES, _TARGETS))
    if boxes != targets or not boxes:
        raise LevelError(f"boxes: {boxes} found, but {targets} targets")
    if not count["$"]:
        raise LevelError(f"boxes: all {boxes} stand on targets already")
    return Level("\n".join(rows))


def _walled(rows: list[str]) -> list[str]:
    """Turn what the player cannot reach into wall. Raise LevelError at an open wall."""
    height, width = len(rows), len(rows[0])
    waiting = [(i, j) for i in range(height) for j in range(width) if rows[i][j] in _PLAYERS]
    inside = set(waiting)
    while waiting:
        i, j = waiting.pop()
        if i in (0, height - 1) or j in (0, width - 1):
            raise LevelError(f"walls: open at row {i}, column {j} (counted from 0)")
        for cell in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if cell not in inside and rows[cell[0]][cell[1]] != "#":
                inside.add(cell)
                waiting.append(cell)
    outside = [
        (i, j, symbol)
        for i, row in enumerate(rows)
        for j, symbol in enumerate(row)
        if (i, j) not in inside and symbol not in "# *"
    ]
    if outside:
        i, j, symbol = outside[0]
        raise LevelError(f"walls: {symbol!r} at row {i}, column {j} is out of the player's reach")
    return [
        "".join(symbol if (i, j) in inside else "#" for j, symbol in enumerate(row))
        for i, row in enumerate(rows)
    ]


def canonical(level: Level, crop: bool = False) -> str:
    """The least of the texts of a level under the eight symmetries of the square.

    Two levels are twins if their canonical texts are equal. With `crop`, one layer of wall is left
    around the player's cells, so that levels are also twins in rooms of other sizes.
    """
    forms, rows = [], level.text.split("\n")
    for _ in range(8 if crop else 4):
        while crop and not rows[1].strip("#"):
            rows = rows[1:]
        rows = ["".join(column) for column in zip(*rows[::-1], strict=True)]
        forms += ["\n".join(rows), "\n".join(row[::-1] for row in rows)]
    return min(forms[-8:])


def draw_level(rows: int, columns: int, free: set[int], board: Board, targets: set[int]) -> str:
    """XSB text of a level, from the cells that are no wall."""
    player, boxes = board
    symbols = []
    for cell in range(rows * columns):
        what = (cell in boxes, cell == player, cell in targets)
        symbols.append(_SYMBOLS[what] if cell in free else "#")
    return "\n".join("".join(symbols[i * columns : (i + 1) * columns]) for i in range(rows))


# (box, player, target) -> symbol
_SYMBOLS = {
    (False, False, False): " ",
    (False, False, True): ".",
    (True, False, False): "$",
    (True, False, True): "*",
    (False, True, False): "@",
    (False, True, True): "+",
}
