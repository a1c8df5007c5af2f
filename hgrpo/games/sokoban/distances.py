"""Computes the shortest solution length of every board of a level.

The lengths are found by one breadth-first search backwards from the solved boards, in which the
player walks or pulls boxes. The depth of the search is limited, because a room with two boxes has
thousands of boards, and solutions longer than an episode are irrelevant.
"""

from collections.abc import Iterator

from hgrpo.games.sokoban.level import Board, Boxes, Level

# Maximum number of boards in a search. A search of this size takes seconds and about 100 MB.
MOST_BOARDS = 500_000


class TooManyBoardsError(ValueError):
    """The search reached more than `MOST_BOARDS` boards."""


def distances(level: Level, depth: int) -> dict[Board, int]:
    """Map each board that can be solved in at most `depth` actions to its shortest solution length.

    Raises:
        TooManyBoardsError: the level has too many boards.
    """
    return board_distances(level.free, level.deltas, tuple(sorted(level.targets)), depth)


def board_distances(
    free: bytes, deltas: tuple[int, ...], targets: Boxes, depth: int
) -> dict[Board, int]:
    """Like `distances`, but for a room without an initial board.

    Args:
        free: 1 for each cell that is not a wall, else 0.
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
            raise TooManyBoardsError(
                f"more than {MOST_BOARDS:,} boards are reachable within {depth} actions, which is "
                "too many"
            )
        frontier = reached
    return lengths


def _before(free: bytes, deltas: tuple[int, ...], player: int, boxes: Boxes) -> Iterator[Board]:
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
