"""Writes and reads the two tables of a round's trajectories.

turns.parquet has one row per turn, and sequences.parquet has one row per trajectory; see
docs/artefacts.md. Embeddings are float16. `overlong` and `context_overflow` are not stored.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hgrpo import parquet
from hgrpo.errors import UserError, one_line
from hgrpo.trajectories.trajectory import Trajectory

TURNS_FILE, SEQUENCES_FILE = "turns.parquet", "sequences.parquet"
# These columns together identify a trajectory.
KEY = ("round", "step", "task_id", "rollout")
_TASK = [("round", "int32"), ("step", "int32"), ("task_id", "string"), ("content_hash", "string")]
_TURN = [
    *(("observation", "string"), ("action", "string")),
    *(("env_reward", "float64"), ("progress", "float64"), ("target", "float64")),
    *(("credit", "float64"), ("advantage", "float64"), ("admissible", "bool")),
    *(("state", "string"), ("commands", "string")),
]
TURNS = pa.schema([*_TASK, ("rollout", "int32"), ("turn", "int32"), *_TURN])
# Attributes of `Turn`, `FinalState` and `Trajectory` that are stored as columns of the same name.
# Columns of `FinalState` have the prefix `final_`.
OF_TURN = tuple(name for name, _ in _TURN)
OF_FINAL_STATE = ("observation", "state", "commands")
OF_TRAJECTORY = ("rollout", "goal", "token_ids", "success", "truncated")
SEQUENCES = pa.schema(
    [
        *_TASK,
        *(("task_type", "string"), ("rollout", "int32"), ("goal", "string")),
        *(("token_ids", pa.list_(pa.int32())), ("spans", pa.list_(pa.list_(pa.int32())))),
        *(("behaviour_logprobs", pa.list_(pa.float32())), ("env_return", "float64")),
        *(("success", "bool"), ("truncated", "bool")),
        *(("embeddings", "binary"), ("goal_embedding", "binary")),
        *((f"final_{name}", "string") for name in OF_FINAL_STATE),
    ]
)


def turn_table(trajectories: Sequence[Trajectory], round_index: int, step: int) -> pa.Table:
    """Create a table with one row per turn, in the order of `trajectories`; see `TURNS`."""
    rows = [
        _place(trajectory, round_index, step)
        | {"turn": index, "rollout": trajectory.rollout}
        | {name: vars(turn)[name] for name in OF_TURN}
        for trajectory in trajectories
        for index, turn in enumerate(trajectory.turns)
    ]
    return pa.Table.from_pylist(rows, schema=TURNS)


def sequence_table(trajectories: Sequence[Trajectory], round_index: int, step: int) -> pa.Table:
    """Create a table with one row per trajectory, in the given order; see `SEQUENCES`."""
    rows = [
        _place(trajectory, round_index, step)
        | {name: vars(trajectory)[name] for name in OF_TRAJECTORY}
        | {
            "task_type": trajectory.task.task_type,
            "spans": [list(span) for span in trajectory.spans],
            "behaviour_logprobs": [p for turn in trajectory.turns for p in turn.logprobs],
            "env_return": trajectory.env_return,
            "embeddings": _packed([turn.embedding for turn in trajectory.turns]),
            "goal_embedding": _packed([trajectory.goal_embedding]),
        }
        | {f"final_{name}": getattr(trajectory.final, name, None) for name in OF_FINAL_STATE}
        for trajectory in trajectories
    ]
    return pa.Table.from_pylist(rows, schema=SEQUENCES)


def _place(trajectory: Trajectory, round_index: int, step: int) -> dict[str, object]:
    task = {"task_id": trajectory.task.task_id, "content_hash": trajectory.task.content_hash}
    return {"round": round_index, "step": step, **task}


def write_table(table: pa.Table, path: Path) -> None:
    """Write a Parquet file with zstd compression and checksums. Equal tables give equal files."""
    pq.write_table(table, path, **parquet.WRITE)


def write_step(
    trajectories: Sequence[Trajectory], round_index: int, step: int, folder: Path
) -> None:
    """Write the rows of one training step to two part files in `folder`, one per table."""
    for name, table in ((TURNS_FILE, turn_table), (SEQUENCES_FILE, sequence_table)):
        write_table(table(trajectories, round_index, step), _part(folder, name, step))


def join_steps(folder: Path, steps: int, out: Path) -> None:
    """Join the part files in `folder` into turns.parquet and sequences.parquet in `out`.

    If the run was stopped before this round, `steps` is 0 and both tables are empty.
    """
    for name, schema in ((TURNS_FILE, TURNS), (SEQUENCES_FILE, SEQUENCES)):
        if steps:
            concatenate([_part(folder, name, step) for step in range(steps)], out / name)
        else:
            write_table(schema.empty_table(), out / name)


def _part(folder: Path, name: str, step: int) -> Path:
    whole = Path(folder) / name
    return whole.with_stem(f"{whole.stem}_{step:05d}")


def concatenate(parts: Sequence[Path], target: Path) -> None:
    """Concatenate the tables in `parts` into one file. Only one part at a time is in memory.

    Raises:
        UserError: a part is damaged.
    """
    writer = None
    try:
        for part in parts:
            try:
                table = pq.read_table(part, **parquet.READ)
            except OSError as error:
                raise UserError(
                    f"{part}: the file is damaged ({one_line(error)}); delete its folder to "
                    "restart the round"
                ) from None
            writer = writer or pq.ParquetWriter(target, table.schema, **parquet.WRITE)
            writer.write_table(table)
    finally:
        if writer:
            writer.close()


def read_turns(
    path: Path, columns: Sequence[str] = TURNS.names, step: int | None = None
) -> pa.Table:
    """Read columns of a turns.parquet; if `step` is given, read only the rows of that step.

    Raises:
        UserError: the file is missing or damaged, a column is missing or has the wrong type, or a
            number is not finite.
    """
    return _read(path, TURNS, columns, step)


def read_sequences(
    path: Path, columns: Sequence[str] = SEQUENCES.names, step: int | None = None
) -> pa.Table:
    """Read columns of a sequences.parquet; arguments and errors as in `read_turns`."""
    return _read(path, SEQUENCES, columns, step)


def _read(path: Path, schema: pa.Schema, columns: Sequence[str], step: int | None) -> pa.Table:
    rows = None if step is None else pc.field("step") == step
    try:
        columns_read = columns if step is None else ["step", *columns]
        types = {field.name: field.type for field in pq.read_schema(path)}
        for name in columns_read:
            if types.get(name) != schema.field(name).type:
                raise UserError(
                    f"{path}: not a table of a round: expected type {schema.field(name).type} for "
                    f"column {name}, got {types.get(name)}"
                )
        table = pq.read_table(
            path, columns=list(columns), filters=rows, partitioning=None, **parquet.READ
        )
    except FileNotFoundError:
        raise UserError(f"{path}: the file is missing") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: damaged, or not a table of a round ({one_line(error)})") from None
    return parquet.check_numbers(table, path, optional=("target", "credit", "advantage"))


def unpacked(data: bytes | None, rows: int, where: str) -> np.ndarray | None:
    """Unpack float16 embeddings [rows, D] from a cell of the table; None for an empty cell.

    Raises:
        UserError: the cell does not contain `rows` finite vectors of equal width. The message
            starts with `where`.
    """
    if data is None:
        return None
    if not rows or not data or len(data) % (2 * rows):
        raise UserError(
            f"{where}: {len(data)} bytes of embeddings cannot be split into {rows} equal vectors"
        )
    vectors = np.frombuffer(data, "<f2").reshape(rows, -1)
    if not np.isfinite(vectors).all():
        raise UserError(f"{where}: the embeddings are not finite")
    return vectors


def _packed(vectors: Sequence[np.ndarray | None]) -> bytes | None:
    """Pack vectors as little-endian float16; None if a vector is None or the list is empty."""
    if not vectors or any(vector is None for vector in vectors):
        return None
    return np.stack(vectors).astype("<f2").tobytes()
