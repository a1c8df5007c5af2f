"""Builds and reads truth.parquet: one row per turn, with its true advantage and gradient sketch.

docs/artefacts.md explains the columns.
"""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa

from hgrpo import parquet
from hgrpo.errors import UserError
from hgrpo.evaluation.truth.values import TurnTruth
from hgrpo.trajectories.played_groups import PlayedGroup

TRUTH_FILE = "truth.parquet"
NUMBERS = tuple(field.name for field in fields(TurnTruth))
# The columns that identify a row's turn.
PLACE = pa.schema(
    {"round": "int32", "step": "int32", "task_id": "string", "content_hash": "string"}
    | {"rollout": "int32", "turn": "int32"}
)
SKETCH = "sketch"
# The sign of an advantage A is clear if |A| exceeds this number of standard errors.
CLEAR = 3.0


def truth_schema(sketch: int) -> pa.Schema:
    """The columns of truth.parquet, with sketches of width `sketch`."""
    columns = [("continuations", pa.int32()), *((name, pa.float64()) for name in NUMBERS)]
    columns += [(SKETCH, pa.list_(pa.float32(), sketch))]
    return pa.schema([*PLACE, *(pa.field(*column) for column in columns)])


def truth_table(
    group: PlayedGroup, truths: Sequence[TurnTruth], continuations: int, sketches: np.ndarray
) -> pa.Table:
    """Build the truth table's rows for the turns of a group.

    Args:
        truths: true values of each trajectory's turns.
        continuations: number of continuations that start before each turn.
        sketches: float32 [turns of the group, size].
    """
    places = turn_places([group])
    numbers = {name: np.concatenate([vars(truth)[name] for truth in truths]) for name in NUMBERS}
    size = sketches.shape[1]
    flat = pa.array(np.ascontiguousarray(sketches, np.float32).reshape(-1))
    columns = {
        **places,
        "continuations": np.full(len(sketches), continuations),
        **numbers,
        SKETCH: pa.FixedSizeListArray.from_arrays(flat, size),
    }
    return pa.table(columns).cast(truth_schema(size))


def turn_places(groups: Sequence[PlayedGroup]) -> dict[str, list]:
    """The columns `PLACE`, with one entry per turn."""
    rows = [
        (group.round, group.step, t.task.task_id, t.task.content_hash, t.rollout, turn)
        for group in groups
        for t in group.trajectories
        for turn in range(len(t.turns))
    ]
    columns = zip(*rows, strict=True) if rows else [[]] * len(PLACE)
    return dict(zip(PLACE.names, map(list, columns), strict=True))


def read_truth(folder: Path, groups: Sequence[PlayedGroup]) -> pa.Table:
    """Read the truth table in a folder, given the folder's rollouts `groups` (`read_groups`).

    Raises:
        UserError: `read_truth_table` fails, or the rows do not match the turns of the rollouts.
    """
    path = Path(folder) / TRUTH_FILE
    table = read_truth_table(path)
    if table.select(PLACE.names).to_pydict() != turn_places(groups):
        raise UserError(f"{path}: rows do not match the turns of the rollouts in the same folder")
    return table


def read_truth_table(path: Path) -> pa.Table:
    """Read a truth.parquet.

    Raises:
        UserError: the file is missing, damaged or not a truth table, or a number is not finite.
    """
    table = parquet.read(path, missing="missing; run `snakemake truth`")
    sketch = table.schema.field(SKETCH).type if SKETCH in table.column_names else None
    size = sketch.list_size if isinstance(sketch, pa.FixedSizeListType) else 1
    if not table.schema.equals(truth_schema(size)):
        raise UserError(f"{path}: the columns are not those of a truth table (docs/artefacts.md)")
    return parquet.check_numbers(table, path)


def sketches_of(table: pa.Table) -> np.ndarray:
    """The sketches of a truth table, float32 [turns, size]."""
    column = table.column(SKETCH).combine_chunks()
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(table), -1)


def clear(advantage: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Whether each turn's |A| exceeds `CLEAR` standard errors, bool [turns].

    Among many turns with a true A of 0, the signs of a few are clear by chance.
    """
    return np.abs(advantage) > CLEAR * error


def true_variance(first: np.ndarray, second: np.ndarray) -> float:
    """Estimate the variance of the true A over turns, excluding noise in the estimates of A.

    It is the covariance of the estimates from the two halves, whose errors are independent. It may
    be negative by chance if most of the variance is noise.
    """
    return float(np.mean((first - first.mean()) * (second - second.mean())))


def reliability(advantage: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Share of the variance of `advantage` that is signal, at most 1; NaN if the variance is 0."""
    spread = float(np.var(advantage))
    return min(1.0, true_variance(first, second) / spread) if spread else float("nan")


def quality(table: pa.Table) -> dict[str, float]:
    """Quality of a truth table, for a summary.

    Returns:
        turns: number of rows.
        continuations: total number of continuations.
        mean_start_value: mean V before the first turn of a trajectory.
        mean_standard_error: mean standard error of A.
        reliability: from `reliability`.
        clear_share: share of turns whose sign is clear.
    """
    names = ("advantage", "advantage_se", "advantage_first", "advantage_second")
    advantage, error, first, second = (table[name].to_numpy() for name in names)
    starts = table["value_before"].to_numpy()[table["turn"].to_numpy() == 0]
    return {
        "turns": len(table),
        "continuations": int(table["continuations"].to_numpy().sum()),
        "mean_start_value": float(starts.mean()),
        "mean_standard_error": float(error.mean()),
        "reliability": reliability(advantage, first, second),
        "clear_share": float(clear(advantage, error).mean()),
    }
