"""Rebuilds the groups of a finished round from turns.parquet and sequences.parquet.

All inputs of credit assigners are restored exactly, except that embeddings are rounded to float16.
`overlong` and `context_overflow` are not stored, and are set to False.
"""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.trajectories import store
from hgrpo.trajectories.trajectory import FinalState, Trajectory, Turn


@dataclass(frozen=True)
class PlayedGroup:
    """The trajectories of one task in one training step, in the order of their rollouts."""

    round: int
    step: int
    trajectories: list[Trajectory]


def read_groups(folder: Path, tasks: Sequence[Task]) -> list[PlayedGroup]:
    """Read all groups of a round, in the order in which they were played.

    Args:
        folder: the round's folder, with turns.parquet and sequences.parquet.
        tasks: the tasks of the round's panel.

    Raises:
        UserError: a file is missing, damaged, empty or of the wrong kind; a trajectory's turns or
            tokens differ between the files; or a task has changed or is not in the panel.
    """
    turns_path, path = Path(folder) / store.TURNS_FILE, Path(folder) / store.SEQUENCES_FILE
    panel = {task.task_id: task for task in tasks}
    turns: dict[tuple, list[dict]] = defaultdict(list)
    for row in store.read_turns(turns_path).to_pylist():
        turns[_key(row)].append(row)
    groups: dict[tuple, list[Trajectory]] = {}
    for row in store.read_sequences(path).to_pylist():
        key = _key(row)
        where = f"{path}: step {row['step']}, {row['task_id']} rollout {row['rollout']}"
        turn_rows = sorted(turns.pop(key, []), key=lambda turn: turn["turn"])
        trajectory = _trajectory(row, turn_rows, _task(row, panel, where), where)
        groups.setdefault(key[:-1], []).append(trajectory)
    if not groups:
        raise UserError(f"{path}: contains no trajectories")
    return [
        PlayedGroup(number, step, sorted(group, key=lambda trajectory: trajectory.rollout))
        for (number, step, _), group in groups.items()
    ]


def _key(row: Mapping) -> tuple:
    return tuple(row[name] for name in store.KEY)


def _task(row: Mapping, panel: Mapping[str, Task], where: str) -> Task:
    task = panel.get(row["task_id"])
    if task is None:
        raise UserError(f"{where}: the panel does not contain this task")
    if task.content_hash != row["content_hash"]:
        raise UserError(
            f"{where}: the task has changed: expected content hash {row['content_hash']}, got "
            f"{task.content_hash} in the panel"
        )
    return task


def _trajectory(row: Mapping, turns: Sequence[Mapping], task: Task, where: str) -> Trajectory:
    spans, length = row["spans"], len(row["spans"])
    ends = list(itertools.accumulate((end - start for start, end in spans), initial=0))
    numbers = [turn["turn"] for turn in turns]
    if numbers != list(range(length)) or ends[-1] != len(row["behaviour_logprobs"]):
        raise UserError(
            f"{where}: {length} spans contain {ends[-1]} tokens in total, but there are "
            f"{len(row['behaviour_logprobs'])} log-probs and turns {numbers}; check that "
            f"{store.TURNS_FILE} and {store.SEQUENCES_FILE} are complete and from the same round"
        )
    embeddings = store.unpacked(row["embeddings"], length, where)
    goal = store.unpacked(row["goal_embedding"], 1, where)
    final = [row[f"final_{name}"] for name in store.OF_FINAL_STATE]
    return Trajectory(
        task=task,
        goal_embedding=None if goal is None else goal[0],
        turns=[
            Turn(
                span=(span[0], span[1]),
                overlong=False,
                token_ids=row["token_ids"][slice(*span)],
                logprobs=row["behaviour_logprobs"][ends[index] : ends[index + 1]],
                embedding=None if embeddings is None else embeddings[index],
                **{name: turn[name] for name in store.OF_TURN},
            )
            for index, (turn, span) in enumerate(zip(turns, spans, strict=True))
        ],
        final=None if final[0] is None else FinalState(*final),
        **{name: row[name] for name in store.OF_TRAJECTORY},
    )
