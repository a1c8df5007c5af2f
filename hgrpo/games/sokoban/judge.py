"""The primer for judges of Sokoban, and the offline rubric.

The rubric parses the boards in the observations, in any view. The distance of a box is the number
of rows and columns between it and the nearest target. The score of a turn is given by the first
line that applies:

score  turn
-----  ----
   10  the last turn of a completed task
    0  a reply that is not understood, or no reply
    2  any other last turn (its effect cannot be observed)
    1  a turn that did not change the board
   10  a turn that increased the number of boxes on targets
    0  a turn that decreased the number of boxes on targets
    8  a turn that decreased the sum of the boxes' distances
    3  any other turn that moved a box
    2  a turn after which the board is the same as in an earlier turn
    5  any other turn, in which the player only walked
"""

import re
from dataclasses import dataclass

from hgrpo.games.environment import JudgeText, Turns
from hgrpo.games.sokoban.views import NOT_UNDERSTOOD

_LEGEND = re.compile(
    r"The symbols are: (.) wall, (.) floor, (.) target, (.) box, (.) box on target, (.) you, (.) "
)
_HEAD = re.compile(r"^(?:Turn .*|Solved\.|Lost\.)$", re.MULTILINE)
_CELL = re.compile(r"\((\d+), (\d+)\)")
Cell = tuple[int, int]


@dataclass(frozen=True)
class _Seen:
    player: frozenset[Cell]
    boxes: frozenset[Cell]
    targets: frozenset[Cell]

    @property
    def placed(self) -> int:
        return len(self.boxes & self.targets)

    @property
    def way(self) -> int:
        return sum(
            min((abs(i - k) + abs(j - m) for k, m in self.targets), default=0)
            for i, j in self.boxes
        )


def score(goal: str, turns: Turns, completed: bool) -> list[float]:
    """Score each turn of a trajectory from 0 to 10, by the rules above."""
    legend = _LEGEND.search(turns[0][0])
    boards = [_board(observation, legend) for observation, _ in turns]
    scores = []
    for t, (_, action) in enumerate(turns):
        if t + 1 == len(turns):
            scores.append(10.0 if completed else 2.0 if action.strip() else 0.0)
        elif not action.strip() or turns[t + 1][0].startswith(NOT_UNDERSTOOD):
            scores.append(0.0)
        else:
            scores.append(_effect(boards[t], boards[t + 1], boards[:t]))
    return scores


def _effect(before: _Seen, after: _Seen, earlier: list[_Seen]) -> float:
    if after == before:
        return 1.0
    if after.placed != before.placed:
        return 10.0 if after.placed > before.placed else 0.0
    if after.boxes != before.boxes:
        return 8.0 if after.way < before.way else 3.0
    return 2.0 if after in earlier else 5.0


def _board(observation: str, legend: re.Match | None) -> _Seen:
    head = _HEAD.search(observation)
    text = observation[head.end() :].strip("\n") if head else ""
    if "Walls:" in text:
        lines = dict(line.split(":", 1) for line in text.split("\n") if ":" in line)
        cells = {name: _cells(row_text) for name, row_text in lines.items()}
        player = cells.get("You", frozenset()) | cells.get("You on a target", frozenset())
        on = cells.get("Boxes on targets", frozenset())
        boxes = cells.get("Boxes", frozenset()) | on
        targets = cells.get("Targets", frozenset()) | on | cells.get("You on a target", frozenset())
        return _Seen(player, boxes, targets)
    if legend is None:
        return _Seen(frozenset(), frozenset(), frozenset())
    _, _, target, box, box_on, you, you_on = legend.groups()
    where = {
        symbol: frozenset(
            (i, j)
            for i, row in enumerate(text.split("\n"))
            for j, cell in enumerate(row)
            if cell == symbol
        )
        for symbol in (target, box, box_on, you, you_on)
    }
    return _Seen(
        where[you] | where[you_on],
        where[box] | where[box_on],
        where[target] | where[box_on] | where[you_on],
    )


def _cells(text: str) -> frozenset[Cell]:
    return frozenset((int(i), int(j)) for i, j in _CELL.findall(text))


JUDGE_TEXT = JudgeText(
    primer=(
        "The game is Sokoban in text. The agent pushes boxes onto targets. It cannot pull, so a "
        "box in a corner or along a wall may be lost. A turn has a few actions, and the episode "
        "ends when they are spent. Pushing a box nearer to a target, and walking to where such a "
        "push is possible, count for more than walking about, and that for more than running into "
        "walls. Pushing a box where it can never reach a target is the worst."
    ),
    score=score,
    rubric_version="sokoban-1",
)
