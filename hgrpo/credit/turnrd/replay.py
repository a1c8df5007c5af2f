"""What TurnRD is fitted on: the trajectories of the rounds so far, from their Parquet files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from hgrpo.errors import UserError

_KEY = ("round", "step", "task_id", "rollout")


@dataclass(frozen=True)
class ReplayRow:
    """One trajectory of T turns with embeddings of width D.

    Attributes:
        embeddings: float16 [T, D].
        goal: float16 [D], None where no model reads goals.
        env_return: sum of the environment's rewards.
        progress: float64 [T].
        targets: float64 [T], NaN where no counterfactual was played; None without any.
    """

    round: int
    step: int
    task_id: str
    rollout: int
    embeddings: np.ndarray
    goal: np.ndarray | None
    env_return: float
    progress: np.ndarray
    targets: np.ndarray | None


def read_replay(folders: Sequence[Path]) -> list[ReplayRow]:
    """Trajectories of the given rounds' folders, by round, step, task and rollout, each once.

    Trajectories without a turn are left out.

    Raises:
        UserError: a file is missing or unreadable, a round was played without embeddings, or
            widths differ.
    """
    rows: dict[tuple, ReplayRow] = {}
    for folder in folders:
        for row in _read(Path(folder)):
            rows[(row.round, row.step, row.task_id, row.rollout)] = row
    widths = {row.embeddings.shape[1] for row in rows.values()}
    if len(widths) > 1:
        raise UserError(f"{folders[0]} and others: embeddings of widths {sorted(widths)}")
    if not rows:
        raise UserError(f"{', '.join(map(str, folders))}: no trajectory to fit on")
    return [rows[key] for key in sorted(rows)]


def _read(folder: Path) -> list[ReplayRow]:
    columns = [*_KEY, "spans", "env_return", "embeddings", "goal_embedding"]
    sequences = _table(folder / "sequences.parquet", columns)
    turns = _table(folder / "turns.parquet", [*_KEY, "turn", "progress", "target"])
    grouped = turns.sort_values("turn").groupby(list(_KEY), sort=False)
    by_key = dict(iter(grouped))
    found = []
    for row in sequences.to_dict("records"):
        length = len(row["spans"])
        if not length:
            continue
        which = f"step {row['step']}, {row['task_id']} rollout {row['rollout']}"
        name = f"{folder / 'sequences.parquet'}: {which}"
        if row["embeddings"] is None:
            raise UserError(f"{name}: no embeddings; the round was not played for TurnRD")
        flat = np.frombuffer(row["embeddings"], "<f2")
        part = by_key.get(tuple(row[key] for key in _KEY))
        if part is None or len(part) != length or len(flat) % length:
            raise UserError(f"{name}: turns, spans and embeddings are of different lengths")
        embeddings = flat.reshape(length, -1)
        if not np.isfinite(embeddings).all():
            raise UserError(f"{name}: embeddings that are not finite")
        goal, targets = row["goal_embedding"], part["target"].to_numpy(float)
        found.append(
            ReplayRow(
                row["round"],
                row["step"],
                row["task_id"],
                row["rollout"],
                embeddings,
                None if goal is None else np.frombuffer(goal, "<f2"),
                float(row["env_return"]),
                part["progress"].to_numpy(float),
                None if np.isnan(targets).all() else targets,
            )
        )
    return found


def _table(path: Path, columns: Sequence[str]):
    try:
        return pq.read_table(path, columns=list(columns)).to_pandas()
    except FileNotFoundError:
        raise UserError(f"{path}: missing") from None
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: not a table of a round ({error})") from None
