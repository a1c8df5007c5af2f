"""The trajectories of a finished round, rebuilt from its Parquet files.

Everything that a credit assigner reads comes back as it was played; embeddings are as they were
stored, in float16. Which replies were cut at the token limit, and whether a truncated trajectory
ran out of context, is not stored: `overlong` and `context_overflow` are False.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hgrpo.envs.base import Task
from hgrpo.errors import UserError
from hgrpo.trajectories.records import SEQUENCES, TURNS
from hgrpo.trajectories.trajectory import Situation, Trajectory, Turn

_KEY = ("round", "step", "task_id", "rollout")


@dataclass(frozen=True)
class CachedGroup:
    """The trajectories of one task in one step, in the order of their rollouts."""

    round: int
    step: int
    trajectories: list[Trajectory]


def read_groups(folder: Path, tasks: Sequence[Task]) -> list[CachedGroup]:
    """Every group of a round, in the order of play.

    Args:
        folder: of a round; its turns.parquet and sequences.parquet are read.
        tasks: the panel that the round was played on.

    Raises:
        UserError: naming the file: it is missing, cut off or not a round's; the two files
            disagree; a task is not in the panel, or its files have changed since.
    """
    turns_path, path = Path(folder) / "turns.parquet", Path(folder) / "sequences.parquet"
    panel = {task.task_id: task for task in tasks}
    turns: dict[tuple, list[dict]] = defaultdict(list)
    for row in _rows(turns_path, TURNS):
        turns[_key(row)].append(row)
    groups: dict[tuple, list[Trajectory]] = {}
    seen = set()
    for row in _rows(path, SEQUENCES):
        key = _key(row)
        where = f"{path}: step {row['step']}, {row['task_id']} rollout {row['rollout']}"
        if key in seen:
            raise UserError(f"{where}: stands twice")
        seen.add(key)
        own = sorted(turns.pop(key, []), key=lambda turn: turn["turn"])
        trajectory = _trajectory(row, own, _task(row, panel, where), turns_path, where)
        groups.setdefault(key[:-1], []).append(trajectory)
    for _, step, task_id, rollout in turns:
        raise UserError(
            f"{turns_path}: step {step}, {task_id} rollout {rollout}: turns without a row in "
            f"{path.name}; are both files of one round?"
        )
    if not groups:
        raise UserError(f"{path}: no trajectory in it")
    return [
        CachedGroup(number, step, sorted(group, key=lambda trajectory: trajectory.rollout))
        for (number, step, _), group in groups.items()
    ]


def _key(row: Mapping) -> tuple:
    return tuple(row[name] for name in _KEY)


def _rows(path: Path, schema: pa.Schema) -> list[dict]:
    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise UserError(f"{path}: missing") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a table of a round ({error})") from None
    lacking = [field.name for field in schema if field.name not in table.schema.names]
    if lacking:
        raise UserError(f"{path}: not a table of a round: no column {', '.join(lacking)}")
    for field in schema:
        found = table.schema.field(field.name).type
        if found != field.type:
            raise UserError(f"{path}: column {field.name} is {found}, not {field.type}")
    return table.select(schema.names).to_pylist()


def _task(row: Mapping, panel: Mapping[str, Task], where: str) -> Task:
    task = panel.get(row["task_id"])
    if task is None:
        raise UserError(f"{where}: no such task in the panel")
    if task.content_hash != row["content_hash"]:
        raise UserError(
            f"{where}: played with content {row['content_hash']}, but the panel has "
            f"{task.content_hash}"
        )
    return task


def _trajectory(
    row: Mapping, turns: Sequence[Mapping], task: Task, turns_path: Path, where: str
) -> Trajectory:
    spans, length = row["spans"], len(row["spans"])
    if [turn["turn"] for turn in turns] != list(range(length)):
        raise UserError(
            f"{where}: {length} spans, but {turns_path.name} has {len(turns)} turns, or not in a "
            "row; are both files of one round, and whole?"
        )
    if any(turn["content_hash"] != row["content_hash"] for turn in turns):
        raise UserError(f"{where}: {turns_path.name} has another content_hash")
    if sum(turn["env_reward"] for turn in turns) != row["env_return"]:
        raise UserError(f"{where}: env_return is not the sum of env_reward in {turns_path.name}")
    _check_spans(row, where)
    embeddings = _half(row["embeddings"], length, where)
    goal = _half(row["goal_embedding"], 1, where)
    return Trajectory(
        task=task,
        rollout=row["rollout"],
        goal=row["goal"],
        goal_embedding=None if goal is None else goal[0],
        token_ids=row["token_ids"],
        behaviour_logprobs=row["behaviour_logprobs"],
        turns=[
            Turn(
                observation=turn["observation"],
                action=turn["action"],
                span=(span[0], span[1]),
                env_reward=turn["env_reward"],
                progress=turn["progress"],
                admissible=turn["admissible"],
                overlong=False,
                state=turn["state"],
                commands=turn["commands"],
                embedding=None if embeddings is None else embeddings[index],
                target=turn["target"],
                credit=turn["credit"],
                advantage=turn["advantage"],
            )
            for index, (turn, span) in enumerate(zip(turns, spans, strict=True))
        ],
        success=row["success"],
        truncated=row["truncated"],
        final=_final(row, where),
    )


def _final(row: Mapping, where: str) -> Situation | None:
    names = ("final_observation", "final_state", "final_commands")
    parts = [row[name] for name in names]
    if all(part is None for part in parts):
        return None
    if any(part is None for part in parts):
        raise UserError(f"{where}: {', '.join(names)} are not all there")
    return Situation(*parts)


def _check_spans(row: Mapping, where: str) -> None:
    """Spans follow one another inside the tokens, with a log-prob for each token in them."""
    edges = [0, *(edge for span in row["spans"] for edge in span), len(row["token_ids"])]
    if any(len(span) != 2 for span in row["spans"]) or edges != sorted(edges):
        raise UserError(f"{where}: spans do not lie in order inside its tokens")
    sampled = sum(end - start for start, end in row["spans"])
    if sampled != len(row["behaviour_logprobs"]):
        raise UserError(
            f"{where}: {len(row['behaviour_logprobs'])} log-probs for {sampled} sampled tokens"
        )


def _half(data: bytes | None, rows: int, where: str) -> np.ndarray | None:
    """Float16 [rows, D] as `records` writes it, None where there was none."""
    if data is None:
        return None
    if not rows or not data or len(data) % (2 * rows):
        raise UserError(f"{where}: embeddings of {len(data)} bytes for {rows} turns")
    return np.frombuffer(data, "<f2").reshape(rows, -1)
