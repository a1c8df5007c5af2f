"""Panels: ordered, disjoint lists of tasks.

Training draws from the first one, evaluation plays the next two, and a study may ask for a fourth,
`analysis`, which neither of them plays.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from hgrpo.atomic import write_json
from hgrpo.envs.base import Task
from hgrpo.errors import UserError

SPLITS = ("train", "validation", "test")
ANALYSIS = "analysis"
PANELS = (*SPLITS, ANALYSIS)

Row = TypeVar("Row")


def write_panels(path: Path, panels: dict[str, list[Task]]) -> None:
    """Write the panels file. Raise UserError as `check_disjoint` does."""
    check_disjoint(panels)
    rows = {split: [task.__dict__ for task in tasks] for split, tasks in panels.items()}
    write_json(path, rows)


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
        raise UserError(f"{path}: no such panels file; run the assets stage first") from None
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a panels file ({error})") from None
    try:
        check_disjoint(panels)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return panels


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
                    raise UserError(f"panels overlap: {place} has the {what} of {other}")


def share_out(
    split: str, rows: Sequence[Row], sizes: Mapping[str, int | None], place: Path, what: str
) -> dict[str, list[Row]]:
    """The panels that a folder's tasks of one split make, from the tasks in panel order.

    Tasks for the analysis panel are training tasks that the train panel does not have: those that
    follow it or, if it takes all there are, the first ones.

    Args:
        sizes: panel -> its size; None takes all tasks.
        place: the folder, for messages.
        what: what the tasks are called in messages, such as "games".

    Raises:
        UserError: there are too few tasks.
    """
    wanted, more = sizes[split], sizes.get(ANALYSIS, 0) if split == "train" else 0
    if len(rows) < (wanted or 1):
        raise UserError(
            f"panels.{split}: {wanted or 'some'} {what} are wanted, {place} has {len(rows)}"
        )
    if len(rows) < (wanted or 1) + more:
        raise UserError(
            f"panels.{ANALYSIS}: {more} {what} are wanted beside {wanted or 'some'} for training, "
            f"{place} has {len(rows)}"
        )
    if wanted is None:
        panels = {split: list(rows[more:]), ANALYSIS: list(rows[:more])}
    else:
        panels = {split: list(rows[:wanted]), ANALYSIS: list(rows[wanted : wanted + more])}
    return {panel: tasks for panel, tasks in panels.items() if tasks}


def check_filled(panels: Mapping[str, list[Task]], sizes: Mapping[str, int | None]) -> None:
    """Raise UserError if a panel has fewer tasks than its size, or none; `sizes` as above."""
    for panel, size in sizes.items():
        if len(panels[panel]) < (size or 1):
            got = ", ".join(f"{name} {len(tasks)}" for name, tasks in panels.items())
            lack = f"{size or 1} wanted, {len(panels[panel])} made"
            raise UserError(f"env.panels.{panel}: too few tasks ({lack}); the panels got {got}")


def check_sizes(panels: Mapping[str, list[Task]], loaded: Mapping) -> None:
    """Raise UserError if a panel has fewer tasks than the evaluation needs.

    Args:
        panels: split -> tasks.
        loaded: a stage's settings. The section `evaluation`, if present, says how many tasks of the
            validation and test panels the evaluation plays.
    """
    source = f"configs/studies/{loaded['study']}.yaml" if "study" in loaded else "--config"
    for panel in ("validation", "test"):
        wanted = (loaded.get("evaluation") or {}).get(f"{panel}_games", 0)
        if wanted > len(panels[panel]):
            raise UserError(
                f"{source}: evaluation.{panel}_games: {wanted} games are wanted, but the {panel} "
                f"panel has {len(panels[panel])}"
            )
