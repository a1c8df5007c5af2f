"""How many actions a board's shortest solution takes: a table of all boards of a level.

The table is made once, by a breadth-first search backwards from the solved boards. Backwards, the
player walks, or pulls the box that stands before it. A depth bounds the search: with two boxes a
room has thousands of boards, and solutions longer than an episode do not matter.
"""

from collections.abc import Iterator

from hgrpo.games.sokoban.level import Board, Boxes, Level

# Boards after which the search gives up: some seconds, and a hundred megabytes.
MOST_BOARDS = 500_000


class TooManyBoardsError(ValueError):
    """The search met more than `MOST_BOARDS` boards."""


def distances(level: Level, depth: int) -> dict[Board, int]:
    """Actions of the shortest solution, for every board that has one of at most `depth`.

    Raises:
        TooManyBoardsError: the level has too many such boards.
    """
    return board_distances(level.free, level.deltas, tuple(sorted(level.targets)), depth)


def board_distances(
    free: bytes, deltas: tuple[int, ...], targets: Boxes, depth: int
) -> dict[Board, int]:
    """As `distances`, for a room whose start is not yet chosen.

    Args:
        free: 1 for each cell that is no wall, else 0.
        targets: cells of the targets, ascending.
    """
    frontier = [(cell, targets) for cell, open_ in enumerate(free) if open_ and cell not in targets]
    lengths = dict.fromkeys(frontier, 0)
    for distance in range(1, depth + 1):
        reached = []
        for board in frontier:
            for before in _before(free, deltas, *board):
                if before not in lengths:
                    lengths[before] = distance
                    reached.append(before)
        if len(lengths) > MOST_BOARDS:
            raise TooManyBoardsError(f"more than {MOST_BOARDS:,} boards within {depth} actions")
        frontier = reached
    return lengths


def _before(free: bytes, deltas: tuple[int, ...], player: int, boxes: Boxes) -> Iterator[Board]:
    """Boards from which one action leads here."""
    for delta in deltas:
        came = player - delta
        if free[came] and came not in boxes:
            yield came, boxes
            pushed = player + delta
            if pushed in boxes:
                if len(boxes) == 1:
                    yield came, (player,)
                else:
                    yield came, tuple(sorted(player if box == pushed else box for box in boxes))
