"""Rollouts with truth in a folder of their own, and credit that others computed for them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hgrpo import parquet
from hgrpo.errors import UserError, did_you_mean, one_line
from hgrpo.evaluation.truth.measured import MeasuredTruth, measured_truth
from hgrpo.evaluation.truth.table import PLACE, TRUTH_FILE, read_truth_table
from hgrpo.trajectories.store import TURNS_FILE, read_turns

CREDIT, ADVANTAGE = "credit", "advantage"
# Columns of a file of credits: which turn, and what it got. The last one may be left out.
TURN = ("task_id", "rollout", "turn")
COLUMNS = (*TURN, CREDIT, ADVANTAGE)


def read_published(folder: Path) -> tuple[pd.DataFrame, MeasuredTruth]:
    """The turns of published rollouts, with the columns `TURN`, and their truth in the same order.

    Raises:
        UserError: a file is missing or damaged, the two files disagree, or a task has two groups.
    """
    truth = read_truth_table(folder / TRUTH_FILE)
    names = [*PLACE.names, "action", "admissible"]
    turns = read_turns(folder / TURNS_FILE, names)
    if turns.select(PLACE.names) != truth.select(PLACE.names):
        raise UserError(f"{folder / TRUTH_FILE}: its rows are not the turns of {TURNS_FILE}")
    places = truth.select(list(TURN)).to_pandas()
    if twice := _twice(places):
        raise UserError(f"{folder / TRUTH_FILE}: {twice}")
    actions = zip(turns["action"].to_pylist(), turns["admissible"].to_pylist(), strict=True)
    return places, measured_truth(truth, list(actions))


def read_credits(path: Path, places: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Credit and advantage of every turn in `places`, in their order: float64 [N] each.

    Without a column `advantage`, the credit itself is the advantage.

    Raises:
        UserError: the file is missing or no Parquet, has other columns, holds a turn twice, lacks a
            turn, holds a turn or trajectory that was not published, or a number is not finite.
    """
    table = _read(path)
    rows = table.select(list(TURN)).to_pandas()
    if twice := _twice(rows):
        raise UserError(f"{path}: {twice}")
    _check_turns(path, rows, places)
    frame = table.to_pandas().set_index(list(TURN))
    ordered = frame.loc[pd.MultiIndex.from_frame(places)]
    numbers: Mapping[str, np.ndarray] = {
        name: ordered[name].to_numpy(dtype=np.float64) for name in COLUMNS if name in ordered
    }
    return numbers[CREDIT], numbers.get(ADVANTAGE, numbers[CREDIT])


def _read(path: Path) -> pa.Table:
    try:
        table = pq.read_table(path, partitioning=None, **parquet.READ)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a Parquet file ({one_line(error)})") from None
    for name in table.column_names:
        if name.startswith("__index_level_"):
            raise UserError(
                f"{path}: pandas wrote its index too; to_parquet(..., index=False) does not"
            )
        if name not in COLUMNS:
            raise UserError(f"{path}: unknown column {name!r}{did_you_mean(name, COLUMNS)}")
    for name in COLUMNS[:-1]:
        if name not in table.column_names:
            raise UserError(f"{path}: no column {name!r}; {', '.join(COLUMNS[:-1])} are needed")
    for name in table.column_names:
        kind = table.schema.field(name).type
        if name == "task_id":
            fits, expected = pa.types.is_string(kind) or pa.types.is_large_string(kind), "text"
        elif name in TURN:
            fits, expected = pa.types.is_integer(kind), "whole numbers"
        else:
            fits, expected = pa.types.is_floating(kind) or pa.types.is_integer(kind), "numbers"
        if not fits:
            raise UserError(f"{path}: column {name!r} holds {kind}, not {expected}")
        if name in TURN and table[name].null_count:
            raise UserError(f"{path}: column {name!r} is empty in {table[name].null_count} rows")
    return parquet.check_numbers(table, path)


def _check_turns(path: Path, rows: pd.DataFrame, places: pd.DataFrame) -> None:
    trajectory = list(TURN[:2])
    lengths = places.groupby(trajectory).size()
    theirs = rows.groupby(trajectory).size()
    for task, rollout in theirs.index.difference(lengths.index):
        raise UserError(f"{path}: {task} rollout {rollout}: no such trajectory was published")
    for task, rollout in lengths.index.difference(theirs.index):
        raise UserError(f"{path}: {task} rollout {rollout}: the trajectory is missing")
    known, listed = (pd.MultiIndex.from_frame(each) for each in (places, rows))
    for task, rollout, turn in listed.difference(known):
        length = lengths[task, rollout]
        raise UserError(
            f"{path}: {task} rollout {rollout}: turn {turn}, but its turns are 0 to {length - 1}"
        )
    for task, rollout, turn in known.difference(listed):
        raise UserError(f"{path}: {task} rollout {rollout}: turn {turn} is missing")


def _twice(places: pd.DataFrame) -> str:
    doubled = places[places.duplicated()]
    return f"{_named(doubled.iloc[0])} is listed twice" if len(doubled) else ""


def _named(row: pd.Series) -> str:
    return f"{row['task_id']} rollout {row['rollout']} turn {row['turn']}"
