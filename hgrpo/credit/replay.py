"""Replay buffer with the trajectories of all rounds so far, for training between rounds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hgrpo.errors import UserError
from hgrpo.games.streams import key
from hgrpo.trajectories import store


@dataclass(frozen=True)
class ReplayRow:
    """One trajectory of T turns, with turn embeddings of width D.

    Attributes:
        embeddings: float16 [T, D], embedding of each turn.
        goal: float16 [D], embedding of the goal; None if the round did not store it.
        env_return: sum of the environment's rewards.
        progress: float64 [T], progress of each turn.
        targets: float64 [T], counterfactual credit of each turn, NaN for turns that were not drawn.
            None if no turn was drawn.
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
    """Read the distinct trajectories of the rounds, sorted by round, step, task and rollout.

    Trajectories without turns are omitted.

    Raises:
        UserError: a file is missing or unreadable, there are no trajectories, or embeddings are
            missing, are not finite or have different widths.
    """
    rows: dict[tuple, ReplayRow] = {}
    for folder in folders:
        for row in _read(Path(folder)):
            rows[(row.round, row.step, row.task_id, row.rollout)] = row
    widths = {row.embeddings.shape[1] for row in rows.values()}
    if len(widths) > 1:
        raise UserError(f"{folders[0]} and later: embeddings have several widths: {sorted(widths)}")
    if not rows:
        raise UserError(f"{', '.join(map(str, folders))}: no trajectories to fit a model to")
    return [rows[key] for key in sorted(rows)]


def _read(folder: Path) -> Iterator[ReplayRow]:
    path = folder / store.SEQUENCES_FILE
    columns = [*store.KEY, "spans", "env_return", "embeddings", "goal_embedding"]
    sequences = store.read_sequences(path, columns).to_pandas()
    columns = [*store.KEY, "turn", "progress", "target"]
    turns = store.read_turns(folder / store.TURNS_FILE, columns).to_pandas()
    turns_of = dict(iter(turns.sort_values("turn").groupby(list(store.KEY), sort=False)))
    for row in sequences.to_dict("records"):
        length = len(row["spans"])
        if not length:
            continue
        where = f"{path}: step {row['step']}, {row['task_id']} rollout {row['rollout']}"
        embeddings = store.unpacked(row["embeddings"], length, where)
        if embeddings is None:
            raise UserError(f"{where}: no embeddings; this round used a different assigner")
        key = tuple(row[name] for name in store.KEY)
        played = turns_of[key]
        goal = store.unpacked(row["goal_embedding"], 1, where)
        targets = played["target"].to_numpy(float)
        yield ReplayRow(
            *key,
            embeddings,
            None if goal is None else goal[0],
            float(row["env_return"]),
            played["progress"].to_numpy(float),
            None if np.isnan(targets).all() else targets,
        )


def split(
    rows: Sequence[ReplayRow], share: float, seed: int
) -> tuple[list[ReplayRow], list[ReplayRow]]:
    """Split the rows into training and validation rows by task.

    A task is held out for validation if a hash of the run's seed and the task, in [0, 1), is below
    `share`. If one set would be empty, one of the newest tasks is moved to it. If there is only one
    task, it is used for training. A task stays in the set to which it was assigned in its first
    round. If a fit starts from an earlier model, the validation tasks are therefore never tasks on
    which that model was trained.
    """
    first: dict[str, int] = {}
    for row in rows:
        first[row.task_id] = min(row.round, first.get(row.task_id, row.round))
    held: set[str] = set()
    seen = 0
    for number in sorted(set(first.values())):
        places = {
            task: key("turnrd-held-out", seed, task) / 2**64
            for task, begun in first.items()
            if begun == number
        }
        seen += len(places)
        held |= {task for task, place in places.items() if place < share}
        # Move a task of this round and not an older task, because earlier fits used older tasks.
        if len(held) == seen:
            held.remove(max(places, key=places.__getitem__))
        elif not held and seen > 1:
            held.add(min(places, key=places.__getitem__))
    return (
        [row for row in rows if row.task_id not in held],
        [row for row in rows if row.task_id in held],
    )
