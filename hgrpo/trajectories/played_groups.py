"""Rebuilds the groups of a finished round from turns.parquet and sequences.parquet.

Everything that a credit assigner reads comes back as it was played, except that embeddings are
float16. `overlong` and `context_overflow` are not stored and are False here.
"""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hgrpo.envs.base import Task
from hgrpo.errors import UserError
from hgrpo.trajectories import store
from hgrpo.trajectories.trajectory import FinalState, Trajectory, Turn


@dataclass(frozen=True)
class PlayedGroup:
    """The trajectories of one task in one step, in the order of their rollouts."""

    round: int
    step: int
    trajectories: list[Trajectory]


def read_groups(folder: Path, tasks: Sequence[Task]) -> list[PlayedGroup]:
    """Every group of a round, in the order of play.

    Args:
        folder: the round's folder, with turns.parquet and sequences.parquet.
        tasks: the panel that the round was played on.

    Raises:
        UserError: a file is missing, damaged, empty or not a table of a round; the two files
            disagree; a trajectory has two rows; a task is not in the panel, or its content has
            changed since. The message names the file.
    """
    turns_path, path = Path(folder) / store.TURNS_FILE, Path(folder) / store.SEQUENCES_FILE
    panel = {task.task_id: task for task in tasks}
    turns: dict[tuple, list[dict]] = defaultdict(list)
    for row in store.read_turns(turns_path).to_pylist():
        turns[_key(row)].append(row)
    groups: dict[tuple, list[Trajectory]] = {}
    seen = set()
    for row in store.read_sequences(path).to_pylist():
        key = _key(row)
        where = f"{path}: step {row['step']}, {row['task_id']} rollout {row['rollout']}"
        if key in seen:
            raise UserError(f"{where}: has two rows")
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
        raise UserError(f"{path}: it holds no trajectory")
    return [
        PlayedGroup(number, step, sorted(group, key=lambda trajectory: trajectory.rollout))
        for (number, step, _), group in groups.items()
    ]


def _key(row: Mapping) -> tuple:
    return tuple(row[name] for name in store.KEY)


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
            f"{where}: {length} spans, but {turns_path.name} numbers its turns "
            f"{[turn['turn'] for turn in turns]}; are both files whole and of one round?"
        )
    if any(turn["content_hash"] != row["content_hash"] for turn in turns):
        raise UserError(f"{where}: {turns_path.name} has another content_hash for it")
    if sum(turn["env_reward"] for turn in turns) != row["env_return"]:
        raise UserError(f"{where}: env_return is not the sum of env_reward in {turns_path.name}")
    _check_spans(row, where)
    embeddings = store.unpacked(row["embeddings"], length, where)
    goal = store.unpacked(row["goal_embedding"], 1, where)
    ends = list(itertools.accumulate((end - start for start, end in spans), initial=0))
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
        final=_final(row, where),
        **{name: row[name] for name in store.OF_TRAJECTORY},
    )


def _final(row: Mapping, where: str) -> FinalState | None:
    names = [f"final_{name}" for name in store.OF_FINAL_STATE]
    parts = [row[name] for name in names]
    if all(part is None for part in parts):
        return None
    if any(part is None for part in parts):
        raise UserError(f"{where}: {', '.join(names)} are given in part; all or none were expected")
    return FinalState(*parts)


def _check_spans(row: Mapping, where: str) -> None:
    """UserError unless spans lie in order inside the tokens, with a log-prob for each token."""
    edges = [0, *(edge for span in row["spans"] for edge in span), len(row["token_ids"])]
    if any(len(span) != 2 for span in row["spans"]) or edges != sorted(edges):
        raise UserError(f"{where}: spans do not lie in order inside its tokens")
    sampled = sum(end - start for start, end in row["spans"])
    if sampled != len(row["behaviour_logprobs"]):
        raise UserError(
            f"{where}: {len(row['behaviour_logprobs'])} log-probs for {sampled} sampled tokens"
        )
