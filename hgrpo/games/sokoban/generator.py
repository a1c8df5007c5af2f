"""Generates levels: a room, its targets, and an initial board with a given solution length.

Rooms are created as in Boxoban and gym-sokoban (Weber et al. 2017, "Imagination-Augmented Agents",
appendix on level generation): a random walk clears small patches. Boxoban and gym-sokoban then
search backwards for a hard initial board, whose solution may be arbitrarily long. This module
computes the shortest solution length of every board, and draws a board with the required length.
"""

from collections.abc import Iterator
from itertools import count, pairwise

import numpy as np

from hgrpo.errors import UserError
from hgrpo.games import streams
from hgrpo.games.panels import PANELS
from hgrpo.games.sokoban.distances import board_distances
from hgrpo.games.sokoban.level import Level, LevelError, canonical, draw_level, read_level
from hgrpo.games.sokoban.settings import GenerateSettings

_TRIES = 1000
_TURN = 0.35
# Each step of the random walk clears the cells at these offsets from the current cell.
_PATCHES = (
    ((0, 0), (0, -1), (0, 1)),
    ((0, 0), (-1, 0), (1, 0)),
    ((0, 0), (-1, 0), (-1, -1)),
    ((0, 0), (-1, 0), (0, 1), (-1, 1)),
    ((0, 0), (1, 0), (0, 1)),
)
_DIRECTIONS = ((-1, 0), (1, 0), (0, -1), (0, 1))


def bands(lengths: tuple[int, int]) -> list[range]:
    """Split the range of lengths into three equal bands."""
    low, high = lengths
    edges = [low + round(part * (high + 1 - low) / 3) for part in range(4)]
    return [range(start, end) for start, end in pairwise(edges)]


def task_type(length: int, lengths: tuple[int, int]) -> str:
    """Name of the band that contains a shortest solution length, such as "2-4 actions"."""
    band = next(band for band in bands(lengths) if length in band)
    return f"{band[0]}-{band[-1]} actions"


def generate(
    config: GenerateSettings, sizes: dict[str, int], seed: int
) -> Iterator[tuple[str, Level, int]]:
    """Yield (panel, level, shortest solution length), panel by panel.

    No two levels are equivalent (see `level.canonical`), within or across splits. Bands alternate,
    so that every prefix of a panel is stratified. A level depends only on the seed, the split and
    its index, unless a level drawn for this index is equivalent to an earlier level.

    Raises:
        UserError: the settings allow too few distinct levels.
    """
    seen: set[str] = set()
    parts = bands(config.lengths)
    for split in PANELS:
        for number in range(sizes.get(split, 0)):
            band = parts[number % len(parts)]
            for attempt in count():
                if attempt == _TRIES:
                    raise UserError(
                        f"panels.{split}: found {number} levels, but no new level of {band[0]} to "
                        f"{band[-1]} actions in {_TRIES} draws; use larger rooms or smaller panels"
                    )
                rng = streams.generator("sokoban-level", seed, split, number, attempt)
                drawn = _draw(config, band, rng)
                if drawn is not None and (form := canonical(drawn[0])) not in seen:
                    seen.add(form)
                    yield split, *drawn
                    break


def _draw(
    config: GenerateSettings, band: range, rng: np.random.Generator
) -> tuple[Level, int] | None:
    """Draw a level, and return it with its solution length; None if the draw fails."""
    free = _room(config.rows, config.columns, rng)
    if len(free) < 2 * config.boxes + 1:
        return None
    cells = sorted(free)
    chosen = rng.choice(len(cells), config.boxes, replace=False)
    targets = tuple(sorted(cells[int(i)] for i in chosen))
    deltas = (-config.columns, config.columns, -1, 1)
    open_ = bytes(cell in free for cell in range(config.rows * config.columns))
    distances = board_distances(open_, deltas, targets, band[-1])
    lengths = sorted({length for length in distances.values() if length in band})
    if not lengths:
        return None
    length = lengths[rng.integers(len(lengths))]
    starts = sorted(board for board, actions in distances.items() if actions == length)
    board = starts[rng.integers(len(starts))]
    text = draw_level(config.rows, config.columns, free, board, set(targets))
    try:
        level = read_level(text)
    except LevelError:  # a target is unreachable
        return None
    return (level, length) if len(level.start[1]) == config.boxes else None


def _room(rows: int, columns: int, rng: np.random.Generator) -> set[int]:
    steps = int(1.7 * (rows + columns))
    row, column = int(rng.integers(1, rows - 1)), int(rng.integers(1, columns - 1))
    direction = _DIRECTIONS[rng.integers(4)]
    free = set()
    for turn, heading, patch in zip(
        rng.random(steps), rng.integers(4, size=steps), rng.integers(5, size=steps), strict=True
    ):
        if turn < _TURN:
            direction = _DIRECTIONS[heading]
        row = min(max(row + direction[0], 1), rows - 2)
        column = min(max(column + direction[1], 1), columns - 2)
        for down, right in _PATCHES[patch]:
            i, j = row + down, column + right
            if 0 < i < rows - 1 and 0 < j < columns - 1:
                free.add(i * columns + j)
    return free
