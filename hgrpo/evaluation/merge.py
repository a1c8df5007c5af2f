"""Merges the episodes of all arms, and rejects inconsistent episodes."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from hgrpo import parquet
from hgrpo.errors import UserError

EVALUATION = ["method", "seed", "round", "panel", "temperature"]
COLUMNS = (
    *EVALUATION,
    *("task_id", "content_hash", "task_type"),
    *("success", "env_return", "final_progress"),
    *("n_turns", "n_inadmissible", "n_overlong", "n_empty", "truncated", "n_action_tokens"),
)
NAMED = 3  # maximum number of tasks listed in an error message


def merge_episodes(paths: Sequence[Path], methods: Sequence[str] | None = None) -> pd.DataFrame:
    """Read all episodes into one checked table, which does not depend on the order of `paths`.

    `methods` are the arms that must have episodes; with None, no arm is required.

    Raises:
        UserError: `paths` is empty; a file, a column or an arm is missing; a file is unreadable or
            empty; an episode appears twice; or two evaluations of a panel have different tasks.
    """
    if not paths:
        raise UserError("no episodes: pass at least one episodes.parquet")
    frame = pd.concat([_read_episodes(path) for path in paths], ignore_index=True)
    present = set(frame["method"].unique())
    if absent := [name for name in methods or () if name not in present]:
        raise UserError(f"none of the {len(paths)} files has episodes of {', '.join(absent)}")
    check_episodes(frame)
    return frame.sort_values([*EVALUATION, "task_id"], ignore_index=True)


def _read_episodes(path: Path) -> pd.DataFrame:
    table = parquet.read(path)
    if lacking := [name for name in COLUMNS if name not in table.column_names]:
        raise UserError(f"{path}: missing columns: {', '.join(lacking)}")
    if not len(table):
        raise UserError(f"{path}: the table contains no episodes")
    return parquet.check_numbers(table.select(COLUMNS), path).to_pandas()


def check_episodes(frame: pd.DataFrame) -> None:
    """Raise a UserError unless all evaluations of a panel contain the same tasks, once each."""
    twice = frame[frame.duplicated([*EVALUATION, "task_id"])]
    if len(twice):
        *key, task = twice[[*EVALUATION, "task_id"]].iloc[0]
        raise UserError(f"{_name(*key)}: task {task} was evaluated twice")
    for panel, episodes in frame.groupby("panel", sort=True):
        _check_panel(panel, episodes)


def _check_panel(panel: str, episodes: pd.DataFrame) -> None:
    hashes = {
        key: group.set_index("task_id")["content_hash"].sort_index()
        for key, group in episodes.groupby(EVALUATION, sort=True)
    }
    largest, expected = max(hashes.items(), key=lambda item: len(item[1]))
    owner = _name(*largest)
    for key, tasks in hashes.items():
        if tasks.equals(expected):
            continue
        here = _name(*key)
        for task in tasks.index.intersection(expected.index):
            if tasks[task] != expected[task]:
                raise UserError(
                    f"panel {panel!r}: task {task} has content hash {tasks[task]} in {here}, but "
                    f"{expected[task]} in {owner}; results from different panels cannot be compared"
                )
        differing = tasks.index.symmetric_difference(expected.index)
        more = f" and {len(differing) - NAMED} more" if len(differing) > NAMED else ""
        raise UserError(
            f"panel {panel!r}: only one of {here} and {owner} has "
            f"{', '.join(differing[:NAMED])}{more}"
        )


def _name(method: str, seed: int, number: int, panel: str, temperature: float) -> str:
    return f"{method} seed {seed} round {number} {panel} T={temperature:g}"
