"""truth.parquet: one row per turn, with the turn's worth and a sketch of its gradient.

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
# The columns that say which turn a row is.
PLACE = pa.schema(
    {"round": "int32", "step": "int32", "task_id": "string", "content_hash": "string"}
    | {"rollout": "int32", "turn": "int32"}
)
SKETCH = "sketch"


def truth_schema(sketch: int) -> pa.Schema:
    """The columns of truth.parquet, with sketches of `sketch` numbers."""
    columns = [("continuations", pa.int32()), *((name, pa.float64()) for name in NUMBERS)]
    columns += [(SKETCH, pa.list_(pa.float32(), sketch))]
    return pa.schema([*PLACE, *(pa.field(*column) for column in columns)])


def truth_table(
    group: PlayedGroup, truths: Sequence[TurnTruth], continuations: int, sketches: np.ndarray
) -> pa.Table:
    """The rows of a group's turns.

    Args:
        truths: the worth of each trajectory's turns.
        continuations: how many were played from before every turn.
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
    """Which turn each row is: the first columns of the table, turn after turn."""
    rows = [
        (group.round, group.step, t.task.task_id, t.task.content_hash, t.rollout, turn)
        for group in groups
        for t in group.trajectories
        for turn in range(len(t.turns))
    ]
    columns = zip(*rows, strict=True) if rows else [[]] * len(PLACE)
    return dict(zip(PLACE.names, map(list, columns), strict=True))


def read_truth(folder: Path, groups: Sequence[PlayedGroup]) -> pa.Table:
    """The truth of the rollouts `groups`, which `read_groups` read from the same folder.

    Raises:
        UserError: as `read_truth_table`, or the rows are not the turns of the rollouts in order.
    """
    path = Path(folder) / TRUTH_FILE
    table = read_truth_table(path)
    if table.select(PLACE.names).to_pydict() != turn_places(groups):
        raise UserError(f"{path}: its rows are not the turns of the rollouts beside it")
    return table


def read_truth_table(path: Path) -> pa.Table:
    """A truth.parquet.

    Raises:
        UserError: the file is missing, damaged or no such table, or a number is not finite.
    """
    table = parquet.read(path, missing="missing; `snakemake truth` makes it")
    sketch = table.schema.field(SKETCH).type if SKETCH in table.column_names else None
    size = sketch.list_size if isinstance(sketch, pa.FixedSizeListType) else 1
    if not table.schema.equals(truth_schema(size)):
        raise UserError(f"{path}: its columns are not those of a truth table")
    return parquet.check_numbers(table, path)


def sketches_of(table: pa.Table) -> np.ndarray:
    """The sketches of a truth table, float32 [turns, size]."""
    column = table.column(SKETCH).combine_chunks()
    return column.flatten().to_numpy(zero_copy_only=False).reshape(len(table), -1)
