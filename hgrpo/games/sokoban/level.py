"""Defines levels: the rules of the game, the text format XSB, and symmetries.

XSB is the common text format of Sokoban levels: `#` wall, ` ` floor, `.` target, `$` box, `*` box
on target, `@` player, `+` player on target. Symbols of the SOK format are also accepted: `-` and
`_` for floor, and letters for the player and boxes. A cell is the integer row * columns + column. A
board is a pair (cell of the player, cells of the boxes in ascending order).
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
    """Raised if a text is not a valid level. The message contains the invalid property."""


@dataclass(frozen=True)
class Level:
    """The initial board of a game, with walls and targets.

    `text` is XSB text with rows of equal length and a border of walls. Cells that the player could
    not reach even without boxes are walls.
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
        """1 for each cell that is not a wall, else 0."""
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
        """The change in the player's cell index for each of `ACTIONS`."""
        return -self.columns, self.columns, -1, 1

    def move(self, player: int, boxes: Boxes, delta: int) -> Board:
        """Return the board after an action: a push or a step if possible, else the same board."""
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
    """Parse one level of XSB text, without the blank rows and columns around it.

    Unreachable floor becomes wall. Unreachable boxes on targets also become wall, because they are
    only decoration.

    Raises:
        LevelError: a symbol is unknown, the number of players is not one, the numbers of boxes and
            targets differ, all boxes are on targets, or the wall around the player is open.
    """
    lines = textwrap.dedent(text.expandtabs().translate(_ALIASES)).rstrip().split("\n")
    rows = [line.rstrip() for line in dropwhile(not_, lines)]
    width = max(map(len, rows), default=0)
    rows = [row.ljust(width) for row in rows]
    unknown = sorted(set("".join(rows)) - set("# .$*@+"))
    if unknown:
        raise LevelError(f"symbols: {''.join(unknown)!r} is not valid in XSB")
    players = sum(row.count(symbol) for row in rows for symbol in _PLAYERS)
    if players != 1:
        raise LevelError(f"player: expected exactly one '@' or '+', not {players}")
    rows = _walled(rows)
    count = Counter("".join(rows))
    boxes, targets = (sum(count[symbol] for symbol in kind) for kind in (_BOXES, _TARGETS))
    if boxes != targets or not boxes:
        raise LevelError(f"boxes: found {boxes} boxes, but {targets} targets")
    if not count["$"]:
        raise LevelError(f"boxes: all boxes ({boxes}) are already on targets")
    return Level("\n".join(rows))


def _walled(rows: list[str]) -> list[str]:
    """Turn unreachable cells into walls; raise LevelError if the player could leave the level."""
    height, width = len(rows), len(rows[0])
    waiting = [(i, j) for i in range(height) for j in range(width) if rows[i][j] in _PLAYERS]
    inside = set(waiting)
    while waiting:
        i, j = waiting.pop()
        if i in (0, height - 1) or j in (0, width - 1):
            raise LevelError(f"walls: the room is open at row {i}, column {j} (counted from 0)")
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
        raise LevelError(f"walls: {symbol!r} at row {i}, column {j} is unreachable")
    return [
        "".join(symbol if (i, j) in inside else "#" for j, symbol in enumerate(row))
        for i, row in enumerate(rows)
    ]


def canonical(level: Level, crop: bool = False) -> str:
    """Return the lexicographically smallest text of a level among its eight symmetric forms.

    Two levels are equivalent if their canonical texts are equal. With `crop`, only one layer of
    walls around the reachable cells is kept, so that levels of different sizes can be equivalent.
    """
    forms, rows = [], level.text.split("\n")
    for _ in range(8 if crop else 4):
        while crop and not rows[1].strip("#"):
            rows = rows[1:]
        rows = ["".join(column) for column in zip(*rows[::-1], strict=True)]
        forms += ["\n".join(rows), "\n".join(row[::-1] for row in rows)]
    return min(forms[-8:])


def draw_level(rows: int, columns: int, free: set[int], board: Board, targets: set[int]) -> str:
    """Create the XSB text of a level; `free` contains the cells that are not walls."""
    player, boxes = board
    symbols = []
    for cell in range(rows * columns):
        what = (cell in boxes, cell == player, cell in targets)
        symbols.append(_SYMBOLS[what] if cell in free else "#")
    return "\n".join("".join(symbols[i * columns : (i + 1) * columns]) for i in range(rows))


# Each key states whether a cell has a box, whether it has the player, and whether it is a target.
_SYMBOLS = {
    (False, False, False): " ",
    (False, False, True): ".",
    (True, False, False): "$",
    (True, False, True): "*",
    (False, True, False): "@",
    (False, True, True): "+",
}
