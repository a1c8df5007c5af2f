"""Reading the store: requested columns only, and one-line errors."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.trajectories import store
from hgrpo.trajectories.trajectory import Trajectory, Turn


@pytest.fixture
def path(tmp_path):
    """turns.parquet of two steps with one trajectory of one turn each."""
    task = Task("hall-0", "hall-0", "hash", "hall")
    parts = []
    for step in (0, 1):
        played = Trajectory(
            task, step, turns=[Turn("a hall", f"go {step}", (1, 2), 0.0, 0.0, True, False)]
        )
        parts.append(tmp_path / f"{step}.parquet")
        store.write_table(store.turn_table([played], 1, step), parts[-1])
    store.concatenate(parts, tmp_path / "turns.parquet")
    return tmp_path / "turns.parquet"


def test_only_the_requested_columns_are_loaded(path):
    table = store.read_turns(path, ["rollout", "action"])
    assert table.to_pydict() == {"rollout": [0, 1], "action": ["go 0", "go 1"]}
    assert store.read_turns(path).schema.equals(store.TURNS)


def test_one_step_is_loaded_without_its_column(path):
    assert store.read_turns(path, ["action"], step=1).to_pydict() == {"action": ["go 1"]}
    assert store.read_turns(path, ["action"], step=2).num_rows == 0


def test_only_columns_that_are_read_are_checked(path):
    table = pq.read_table(path).drop_columns(["credit"])
    step = table.schema.get_field_index("step")
    store.write_table(table.set_column(step, "step", table["step"].cast(pa.int64())), path)
    assert store.read_turns(path, ["action"]).num_rows == 2
    with pytest.raises(UserError, match=r"turns\.parquet: not a table .* for column credit, got"):
        store.read_turns(path, ["action", "credit"])
    with pytest.raises(UserError, match="expected type int32 for column step, got int64"):
        store.read_turns(path, ["step"])


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "the file is missing"), (b"PAR1 PAR1", "damaged, or not a table of a round (")],
)
def test_a_file_that_is_no_table_is_named_on_one_line(path, content, message):
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        store.read_turns(path)
    assert str(caught.value).startswith(f"{path}: {message}") and "\n" not in str(caught.value)


def test_a_flipped_byte_in_a_page_is_named_on_one_line(path):
    whole = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(store.TURNS.names.index("action"))
    start = column.dictionary_page_offset or column.data_page_offset
    place = start + column.total_compressed_size - 1
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    # Without the check, the column reads as other text or not at all.
    with pytest.raises(UserError) as caught:
        store.read_turns(path, ["action"])
    assert str(caught.value).startswith(f"{path}: damaged, or not a table of a round (")
    assert "CRC" in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(UserError, match=rf"^{path}: the file is damaged \(.*CRC"):
        store.concatenate([path], path.with_name("all.parquet"))
