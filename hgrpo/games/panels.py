"""Reads, writes and checks panels, which are ordered and disjoint lists of tasks.

The panel `train` is used in training. The panels `validation` and `test` are used in evaluation. A
study may have a fourth panel, `analysis`, which is used in neither training nor evaluation.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from hgrpo.errors import UserError
from hgrpo.games import streams
from hgrpo.games.base import Panels, Task

SPLITS = ("train", "validation", "test")
ANALYSIS = "analysis"
PANELS = (*SPLITS, ANALYSIS)

_MOST_PRINTED = 20

Row = TypeVar("Row")


def write_panels(path: Path, panels: dict[str, list[Task]]) -> None:
    """Write the panels file. Raise UserError if the panels fail `check_disjoint`."""
    check_disjoint(panels)
    rows = {split: [task.__dict__ for task in tasks] for split, tasks in panels.items()}
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def read_panels(path: Path) -> dict[str, list[Task]]:
    """Read a panels file, in panel order.

    Raises:
        UserError: the file is missing or not a panels file, or fails `check_disjoint`.
    """
    try:
        rows = json.loads(path.read_bytes())
        there = PANELS if ANALYSIS in rows else SPLITS
        panels = {split: [Task(**row) for row in rows[split]] for split in there}
    except FileNotFoundError:
        raise UserError(f"{path}: panels file not found; run the assets stage first") from None
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path}: the file is not a valid panels file ({error})") from None
    try:
        check_disjoint(panels)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return panels


def panel_hash(tasks: Iterable[Task]) -> str:
    """SHA-256 (hex) of the content hashes of a panel's tasks, in panel order."""
    return hashlib.sha256("".join(task.content_hash for task in tasks).encode()).hexdigest()


def check_disjoint(panels: dict[str, list[Task]]) -> None:
    """Raise UserError if a panel is empty or two tasks have the same id or content hash."""
    owner: dict[str, str] = {}
    for split, tasks in panels.items():
        if not tasks:
            raise UserError(f"panel {split!r} has no tasks")
        for task in tasks:
            place = f"{split}:{task.task_id}"
            for what, key in (("content", task.content_hash), ("id", f"id {task.task_id}")):
                if (other := owner.setdefault(key, place)) is not place:
                    raise UserError(f"panels overlap: {place} and {other} have the same {what}")


def leave_out(counts: Counter[str], what: str, error: UserError, root: Path) -> None:
    """Count a malformed record in the user's files as excluded. Print the first few.

    The reason in `counts` contains the error of the first such record.

    Args:
        counts: maps a reason to the number of excluded records; updated in place.
        what: kind of the record, such as "game".
        root: folder to which file names in the message are relative.
    """
    name = str(error).replace(f"{root}/", "")
    begins = f"bad {what}, the first: "
    reason = next((each for each in counts if each.startswith(begins)), begins + name)
    counts[reason] += 1
    if counts[reason] <= _MOST_PRINTED:
        print(f"excluded: bad {what}: {name}")


def stratified(rows: Iterable[Row], stratum: Callable[[Row], str], *stream: object) -> list[Row]:
    """Shuffle each stratum, then interleave the strata, so that every prefix is stratified.

    Args:
        stratum: function that returns the stratum of a row.
        stream: the random stream of a stratum has the name (*stream, stratum).
    """
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[stratum(row)].append(row)
    ranked: list[tuple[int, str, Row]] = []
    for name, members in groups.items():
        order = streams.generator(*stream, name).permutation(len(members))
        ranked += [(rank, name, members[i]) for rank, i in enumerate(order)]
    return [row for _, _, row in sorted(ranked, key=lambda entry: entry[:2])]


def share_out(
    split: str, rows: Sequence[Row], sizes: Mapping[str, int | None]
) -> list[tuple[str, Row]]:
    """Assign the tasks of one split of a folder to panels, in order; then call `check_filled`.

    The analysis panel gets the tasks of the train split that follow those of the train panel. If
    the train panel has no maximum size, the analysis panel gets the first tasks of the split.

    Args:
        sizes: maps a panel to its maximum number of tasks; None for no maximum.
    """
    size, more = sizes[split], sizes.get(ANALYSIS, 0) if split == "train" else 0
    train, rest = (rows[more:], rows[:more]) if size is None else (rows[:size], rows[size:])
    return [(split, row) for row in train] + [(ANALYSIS, row) for row in rest[:more]]


def check_filled(panels: Panels, sizes: Mapping[str, int | None]) -> None:
    """Raise UserError if a panel is empty or has fewer tasks than its size (None: any number)."""
    for panel, size in sizes.items():
        if len(panels[panel]) < (size or 1):
            got = ", ".join(f"{name} {len(tasks)}" for name, tasks in panels.items())
            lack = f"{size or 1} required, {len(panels[panel])} available"
            raise UserError(f"env.panels.{panel}: too few tasks ({lack}); panel sizes: {got}")
