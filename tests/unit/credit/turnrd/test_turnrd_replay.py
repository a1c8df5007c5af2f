"""The replay that TurnRD is fitted on holds each trajectory once."""

import numpy as np
import pytest

from hgrpo.credit.replay import read_replay
from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.games.streams import generator
from hgrpo.trajectories.store import concatenate, sequence_table, turn_table, write_table
from hgrpo.trajectories.trajectory import Trajectory, Turn

WIDTH = 6


def trajectory(task_id, rollout, rng, turns=None, width=WIDTH):
    """Random embeddings; the return is 1 where the first turn's first number is above 0."""
    length = int(rng.integers(2, 6)) if turns is None else turns
    embeddings = rng.standard_normal((length, width))
    won = float(length > 0 and embeddings[0, 0] > 0)
    return Trajectory(
        Task(task_id, task_id, f"hash-{task_id}", "toy"),
        rollout,
        turns=[
            Turn(
                observation="a room",
                action="look",
                span=(2 * i + 1, 2 * i + 2),
                env_reward=won if i == length - 1 else 0.0,
                progress=0.0,
                admissible=True,
                overlong=False,
                embedding=embeddings[i].astype(np.float32),
            )
            for i in range(length)
        ],
    )


def write_round(folder, number, steps, **settings):
    """A round's two files; `steps` holds the task ids of each step, played twice each."""
    folder.mkdir(parents=True)
    rng = generator("test-replay", number)
    played = [
        [trajectory(task, k, rng, **settings) for task in part for k in (0, 1)] for part in steps
    ]
    for name, table in (("turns", turn_table), ("sequences", sequence_table)):
        parts = []
        for step, flat in enumerate(played):
            parts.append(folder / f"{name}_{step}.parquet")
            write_table(table(flat, number, step), parts[-1])
        concatenate(parts, folder / f"{name}.parquet")
    return played


def keys(rows):
    return [(row.round, row.step, row.task_id, row.rollout) for row in rows]


def test_a_round_may_play_a_task_twice(tmp_path):
    played = write_round(tmp_path / "r", 1, [["a", "b"], ["b", "a"]])
    rows = read_replay([tmp_path / "r"])
    assert keys(rows) == [(1, step, t, k) for step in (0, 1) for t in "ab" for k in (0, 1)]
    by_key = {
        (step, t.task.task_id, t.rollout): t for step, part in enumerate(played) for t in part
    }
    for row in rows:
        was = by_key[row.step, row.task_id, row.rollout]
        assert row.env_return == was.env_return
        expected = np.stack([turn.embedding for turn in was.turns])
        np.testing.assert_array_equal(row.embeddings, expected.astype("f2"))


def test_a_folder_given_twice_is_read_once(tmp_path):
    for number in (1, 2):
        write_round(tmp_path / f"r{number}", number, [["a", "b"], ["a"]])
    once = read_replay([tmp_path / "r1", tmp_path / "r2"])
    twice = read_replay([tmp_path / name for name in ("r2", "r1", "r1", "r2")])
    assert keys(once) == keys(twice) and len(once) == 12
    for one, two in zip(once, twice, strict=True):
        assert one.env_return == two.env_return
        np.testing.assert_array_equal(one.embeddings, two.embeddings)


def test_a_turn_without_a_verdict_has_none_in_the_replay_either(tmp_path):
    rng = generator("test-replay", "verdicts")
    played = [trajectory("a", k, rng, turns=3) for k in (0, 1)]
    played[0].turns[1].target = -0.5
    for name, table in (("turns", turn_table), ("sequences", sequence_table)):
        write_table(table(played, 1, 0), tmp_path / f"{name}.parquet")
    taught, untaught = read_replay([tmp_path])
    np.testing.assert_array_equal(taught.targets, [np.nan, -0.5, np.nan])
    assert untaught.targets is None


def test_trajectories_without_turns_are_left_out(tmp_path):
    write_round(tmp_path / "r", 1, [["a"]], turns=0)
    with pytest.raises(UserError, match="no trajectories to fit a model to"):
        read_replay([tmp_path / "r"])


def test_rounds_of_different_widths_are_refused(tmp_path):
    write_round(tmp_path / "r1", 1, [["a"]])
    write_round(tmp_path / "r2", 2, [["a"]], width=WIDTH + 1)
    with pytest.raises(UserError, match=r"several widths: \[6, 7\]"):
        read_replay([tmp_path / "r1", tmp_path / "r2"])
