"""Panels: the ordered, disjoint lists of tasks that training and evaluation draw from."""

import json
from collections.abc import Mapping
from pathlib import Path

from hgrpo.envs.base import Task
from hgrpo.errors import UserError

SPLITS = ("train", "validation", "test")


def write_panels(path: Path, panels: dict[str, list[Task]]) -> None:
    """Write the panels file. Raise UserError as `check_disjoint` does."""
    check_disjoint(panels)
    rows = {split: [task.__dict__ for task in tasks] for split, tasks in panels.items()}
    path.write_text(json.dumps(rows, indent=1) + "\n")


def read_panels(path: Path) -> dict[str, list[Task]]:
    """Read a panels file, in panel order.

    Raises:
        UserError: the file is missing or not a panels file, or fails `check_disjoint`.
    """
    try:
        rows = json.loads(path.read_text())
        panels = {split: [Task(**row) for row in rows[split]] for split in SPLITS}
    except FileNotFoundError:
        raise UserError(f"{path}: no such panels file; run the assets stage first") from None
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a panels file ({error})") from None
    check_disjoint(panels)
    return panels


def check_disjoint(panels: dict[str, list[Task]]) -> None:
    """Raise UserError if a panel is empty or two tasks have the same content hash."""
    owner: dict[str, str] = {}
    for split, tasks in panels.items():
        if not tasks:
            raise UserError(f"panel {split!r} has no tasks")
        for task in tasks:
            place = f"{split}:{task.task_id}"
            if task.content_hash in owner:
                raise UserError(
                    f"panels overlap: {place} has the content of {owner[task.content_hash]}"
                )
            owner[task.content_hash] = place


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
