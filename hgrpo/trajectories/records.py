"""Trajectories as Parquet: one row per turn, and one row per sequence.

Columns are documented in docs/artefacts.md and tested against these schemas.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hgrpo.trajectories.trajectory import Trajectory

TURNS = pa.schema(
    [
        ("round", pa.int32()),
        ("step", pa.int32()),
        ("task_id", pa.string()),
        ("content_hash", pa.string()),
        ("rollout", pa.int32()),
        ("turn", pa.int32()),
        ("observation", pa.string()),
        ("action", pa.string()),
        ("env_reward", pa.float64()),
        ("progress", pa.float64()),
        ("target", pa.float64()),
        ("credit", pa.float64()),
        ("advantage", pa.float64()),
        ("admissible", pa.bool_()),
        ("state", pa.string()),
        ("commands", pa.string()),
    ]
)
SEQUENCES = pa.schema(
    [
        ("round", pa.int32()),
        ("step", pa.int32()),
        ("task_id", pa.string()),
        ("content_hash", pa.string()),
        ("task_type", pa.string()),
        ("rollout", pa.int32()),
        ("goal", pa.string()),
        ("token_ids", pa.list_(pa.int32())),
        ("spans", pa.list_(pa.list_(pa.int32()))),
        ("behaviour_logprobs", pa.list_(pa.float32())),
        ("env_return", pa.float64()),
        ("success", pa.bool_()),
        ("truncated", pa.bool_()),
        ("embeddings", pa.binary()),
        ("goal_embedding", pa.binary()),
        ("final_observation", pa.string()),
        ("final_state", pa.string()),
        ("final_commands", pa.string()),
    ]
)


def turn_table(trajectories: Sequence[Trajectory], round_index: int, step: int) -> pa.Table:
    """One row per turn, in the order of the trajectories."""
    rows = [
        {
            "round": round_index,
            "step": step,
            "task_id": trajectory.task.task_id,
            "content_hash": trajectory.task.content_hash,
            "rollout": trajectory.rollout,
            "turn": index,
            "observation": turn.observation,
            "action": turn.action,
            "env_reward": turn.env_reward,
            "progress": turn.progress,
            "target": turn.target,
            "credit": turn.credit,
            "advantage": turn.advantage,
            "admissible": turn.admissible,
            "state": turn.state,
            "commands": turn.commands,
        }
        for trajectory in trajectories
        for index, turn in enumerate(trajectory.turns)
    ]
    return pa.Table.from_pylist(rows, schema=TURNS)


def sequence_table(trajectories: Sequence[Trajectory], round_index: int, step: int) -> pa.Table:
    """One row per trajectory: exactly what was sampled, and with which probability."""
    rows = [
        {
            "round": round_index,
            "step": step,
            "task_id": trajectory.task.task_id,
            "content_hash": trajectory.task.content_hash,
            "task_type": trajectory.task.task_type,
            "rollout": trajectory.rollout,
            "goal": trajectory.goal,
            "token_ids": trajectory.token_ids,
            "spans": [list(turn.span) for turn in trajectory.turns],
            "behaviour_logprobs": trajectory.behaviour_logprobs,
            "env_return": trajectory.env_return,
            "success": trajectory.success,
            "truncated": trajectory.truncated,
            "embeddings": _half([turn.embedding for turn in trajectory.turns]),
            "goal_embedding": _half([trajectory.goal_embedding]),
            "final_observation": trajectory.final and trajectory.final.observation,
            "final_state": trajectory.final and trajectory.final.state,
            "final_commands": trajectory.final and trajectory.final.commands,
        }
        for trajectory in trajectories
    ]
    return pa.Table.from_pylist(rows, schema=SEQUENCES)


def _half(vectors: Sequence[np.ndarray | None]) -> bytes | None:
    """Vectors one after another as little-endian float16; None unless all are there."""
    if not vectors or any(vector is None for vector in vectors):
        return None
    return np.stack(vectors).astype("<f2").tobytes()


def write_table(table: pa.Table, path: Path) -> None:
    """Write Parquet with zstd; the same table gives the same bytes."""
    pq.write_table(table, path, compression="zstd")


def concatenate(parts: Sequence[Path], target: Path) -> None:
    """Write the tables of `parts`, in order, as one file, a part in memory at a time."""
    writer = None
    try:
        for part in parts:
            table = pq.read_table(part)
            writer = writer or pq.ParquetWriter(target, table.schema, compression="zstd")
            writer.write_table(table)
    finally:
        if writer:
            writer.close()
