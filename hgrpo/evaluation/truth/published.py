"""Reads published rollouts with true advantages, and files of credit for these rollouts."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from hgrpo import parquet
from hgrpo.errors import UserError, did_you_mean, one_line
from hgrpo.evaluation.truth.measured import MeasuredTruth, measured_truth
from hgrpo.evaluation.truth.table import PLACE, TRUTH_FILE, read_truth_table
from hgrpo.trajectories.store import TURNS_FILE, read_turns

CREDIT, ADVANTAGE = "credit", "advantage"
# These columns of a credit file identify a turn.
TURN = ("task_id", "rollout", "turn")
COLUMNS = (*TURN, CREDIT, ADVANTAGE)
_TYPES = (pa.string(), pa.int64(), pa.int64(), pa.float64(), pa.float64())


def read_published(folder: Path) -> tuple[pd.DataFrame, MeasuredTruth]:
    """Read the turns of published rollouts (columns `TURN`), and their true advantages.

    Raises:
        UserError: a file is missing or damaged, the two files disagree, or a task has two groups.
    """
    truth = read_truth_table(folder / TRUTH_FILE)
    names = [*PLACE.names, "action", "admissible"]
    turns = read_turns(folder / TURNS_FILE, names)
    if turns.select(PLACE.names) != truth.select(PLACE.names):
        raise UserError(f"{folder / TRUTH_FILE}: rows do not match the turns in {TURNS_FILE}")
    places = truth.select(list(TURN)).to_pandas()
    if twice := _twice(places):
        raise UserError(f"{folder / TRUTH_FILE}: {twice}")
    actions = zip(turns["action"].to_pylist(), turns["admissible"].to_pylist(), strict=True)
    return places, measured_truth(truth, list(actions))


def read_credits(path: Path, places: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Read credit and advantage of the turns in `places`, in this order, float64 [N] each.

    If the file has no column `advantage`, the credit is used as advantage.

    Raises:
        UserError: the file is missing or damaged or has unknown columns; a turn is repeated,
            missing or not published; or a number is not finite.
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
    table = parquet.read(path)
    for name in table.column_names:
        if name not in COLUMNS:
            raise UserError(f"{path}: unknown column {name!r}{did_you_mean(name, COLUMNS)}")
    names = COLUMNS if ADVANTAGE in table.column_names else COLUMNS[:-1]
    schema = pa.schema(list(zip(names, _TYPES, strict=False)))
    try:
        table = table.select(list(names)).cast(schema)
    except (KeyError, ValueError) as error:
        raise UserError(f"{path}: not a table of credit ({one_line(error)})") from None
    return parquet.check_numbers(table, path)


def _check_turns(path: Path, rows: pd.DataFrame, places: pd.DataFrame) -> None:
    published, listed = (pd.MultiIndex.from_frame(each) for each in (places, rows))
    unknown, missing = listed.difference(published), published.difference(listed)
    for places_of_one, fault in ((unknown, "was not published"), (missing, "is missing")):
        for task, rollout, turn in places_of_one:
            raise UserError(f"{path}: {task} rollout {rollout}: turn {turn} {fault}")


def _twice(places: pd.DataFrame) -> str:
    doubled = places[places.duplicated()]
    return f"{_named(doubled.iloc[0])} is listed twice" if len(doubled) else ""


def _named(row: pd.Series) -> str:
    return f"{row['task_id']} rollout {row['rollout']} turn {row['turn']}"
