"""Renders boards as text: as a grid of symbols, as lists of coordinates, or as both.

Unlike in RAGEN, views with coordinates also have a legend and a list of the walls.
"""

from functools import lru_cache

from hgrpo.games.sokoban.level import ACTIONS, Boxes, Level
from hgrpo.games.sokoban.replies import SEPARATOR
from hgrpo.games.sokoban.settings import SokobanSettings, View

GOAL = "push every box onto a target."
NOT_UNDERSTOOD = f"Not understood: an action is {', '.join(ACTIONS[:-1])} or {ACTIONS[-1]}.\n"
_NAMES = ("wall", "floor", "target", "box", "box on target", "you", "you on a target")


def opening(level: Level, settings: SokobanSettings) -> str:
    """The text above the first board: the rules, the legend and the limits of an episode."""
    lines = [f"You move boxes in a room. Your task is to: {GOAL}"]
    lines.append(
        "You push a box by walking against it. It moves if the cell behind it is free. You cannot "
        "pull. Walls stop you."
    )
    if settings.view != "coord":
        legend = zip(settings.symbols, _NAMES, strict=True)
        lines.append(f"The symbols are: {', '.join(f'{s} {name}' for s, name in legend)}.")
    if settings.view != "grid":
        lines.append(
            f"Cells are (row, column) of {level.rows} rows and {level.columns} columns, counted "
            "from 0 at the top left."
        )
    many, most = settings.actions_per_turn, settings.actions
    words = f"{', '.join(ACTIONS[:-1])} or {ACTIONS[-1]}"
    if many == 1:
        lines.append(f"Reply with one action: {words}.")
    else:
        pair = f" {SEPARATOR} ".join((ACTIONS[0], ACTIONS[2]))
        lines.append(
            f"Reply with up to {many} actions, {words}, separated by {SEPARATOR}, such as {pair}."
        )
    lines.append("You may think first, if the actions then stand in <answer></answer>.")
    lines.append(f"There are {settings.turn_cap} turns and {most} actions in all.")
    return "\n".join(lines) + "\n"


class Picture:
    """Renders the boards of one level. For `view` and `symbols`, see `SokobanSettings`."""

    def __init__(self, level: Level, view: View, symbols: str):
        wall, floor, target, *others = symbols
        self._box, self._box_on_target, self._player, self._player_on_target = others
        self._targets, self._columns = level.targets, level.columns
        cells = [
            target if cell in level.targets else floor if open_ else wall
            for cell, open_ in enumerate(level.free)
        ]
        # `cells` has one entry per cell, so the last entry of a row also contains the line break.
        for end in range(level.columns - 1, len(cells) - 1, level.columns):
            cells[end] += "\n"
        self._cells = cells
        self._names = [f" ({i // level.columns}, {i % level.columns})" for i in range(len(cells))]
        walls = [cell for cell, open_ in enumerate(level.free) if not open_]
        self._walls = f"Walls:{self._list(walls)}\n"
        self.draw = {"grid": self._grid, "coord": self._coord, "grid_coord": self._both}[view]

    def _grid(self, player: int, boxes: Boxes) -> str:
        cells, targets = self._cells[:], self._targets
        for box in boxes:
            cells[box] = self._box_on_target if box in targets else self._box
        cells[player] = self._player_on_target if player in targets else self._player
        return "".join(cells)

    def _coord(self, player: int, boxes: Boxes) -> str:
        targets = self._targets
        empty = [cell for cell in sorted(targets) if cell != player and cell not in boxes]
        on = [box for box in boxes if box in targets]
        off = [box for box in boxes if box not in targets]
        you = "You on a target" if player in targets else "You"
        return (
            f"{self._walls}Targets:{self._list(empty)}\nBoxes:{self._list(off)}\n"
            f"Boxes on targets:{self._list(on)}\n{you}:{self._names[player]}"
        )

    def _both(self, player: int, boxes: Boxes) -> str:
        return f"{self._coord(player, boxes)}\n{self._grid(player, boxes)}"

    def _list(self, cells: list[int]) -> str:
        names = self._names
        return "".join([names[cell] for cell in cells]) or " none"


@lru_cache(maxsize=1000)
def picture(level: Level, view: View, symbols: str) -> Picture:
    """Create a `Picture`, or return it from the cache of the 1000 most recently used ones."""
    return Picture(level, view, symbols)
