"""Demonstrations that are no episodes are named with their row and task."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hgrpo.errors import UserError
from hgrpo.learning.imitation import read_demonstrations

GOOD = {"task_id": "a", "observations": ["x", "y"], "actions": ["go"]}


def read(folder, row):
    pq.write_table(pa.Table.from_pylist([GOOD, row]), folder / "trajectories.parquet")
    return read_demonstrations(folder)


def test_whole_episodes_are_read(tmp_path):
    row = {"task_id": "b", "observations": ["x"], "actions": []}
    assert read(tmp_path, row) == [GOOD, row]


@pytest.mark.parametrize(
    "change",
    [{"actions": []}, {"actions": ["go", "on"]}, {"observations": ["x", None]}, {"actions": None}],
)
def test_an_episode_with_a_gap_is_named(tmp_path, change):
    with pytest.raises(UserError, match="trajectories.parquet: row 1, task b: "):
        read(tmp_path, {**GOOD, "task_id": "b"} | change)
