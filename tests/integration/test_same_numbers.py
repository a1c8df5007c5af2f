"""The benchmark that compares two results folders, on small files of every kind."""

import runpy
import shutil
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

ROUND = "rl/flatGRPO/seed_11/round_1"
FIT = "TurnRDV2/seed_11/round_1/model.safetensors"
WEIGHTS = ("base/model.safetensors", f"{ROUND}/adapter/model.safetensors", f"credit_fit/{FIT}")
TABLES = (
    "expert/trajectories.parquet",
    f"{ROUND}/turns.parquet",
    f"{ROUND}/sequences.parquet",
    "eval/flatGRPO/seed_11/round_1/episodes.parquet",
)


def write_weights(path, value=0.0):
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({"a": torch.zeros(2), "b": torch.full((2,), value)}, path)


def write_table(path, **changes):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"turn": [0, 1], "credit": [0.5, 0.25]} | changes), path)


@pytest.fixture
def folders(tmp_path):
    """Two equal results folders."""
    before, after = tmp_path / "before", tmp_path / "after"
    for name in WEIGHTS:
        write_weights(before / name)
    for name in TABLES:
        write_table(before / name)
    shutil.copytree(before, after)
    return before, after


@pytest.fixture
def compare(project, folders, monkeypatch, capsys):
    """Runs the script in this process: its exit status and its lines."""

    def run():
        script = str(project / "benchmarks/same_numbers.py")
        monkeypatch.setattr(sys, "argv", [script, *map(str, folders)])
        with pytest.raises(SystemExit) as stopped:
            runpy.run_path(script, run_name="__main__")
        return int(stopped.value.code), capsys.readouterr().out.splitlines()

    return run


def test_equal_folders_are_equal(compare, folders):
    code, lines = compare()
    assert code == 0
    assert lines[-1] == f"{len(WEIGHTS + TABLES)} files compared, 0 different"
    assert {line.split()[1] for line in lines[:-1]} == {*WEIGHTS, *TABLES}
    assert all(line.startswith("equal ") for line in lines[:-1])


def test_every_difference_is_named(compare, folders):
    _, after = folders
    write_weights(after / WEIGHTS[0], 1.0)
    save_file({"a": torch.zeros(2)}, after / WEIGHTS[1])
    write_table(after / TABLES[0], credit=[0.5, 0.26])
    write_table(after / TABLES[1], more=[1, 2])
    pq.write_table(pa.table({"turn": [0]}), after / TABLES[2])
    code, lines = compare()
    assert code == 1 and lines[-1] == "7 files compared, 5 different"
    reasons = dict(line.removeprefix("DIFFERENT ").split(": ", 1) for line in lines if ": " in line)
    names = "['turn', 'credit']"
    assert reasons == {
        WEIGHTS[0]: "tensor b",
        WEIGHTS[1]: "tensor b is in only one file",
        TABLES[0]: "column credit",
        TABLES[1]: f"columns {names} and ['turn', 'credit', 'more']",
        TABLES[2]: f"columns {names} and ['turn']; column turn",
    }


def test_numbers_that_are_equal_to_some_digits_are_different(compare, folders):
    write_table(folders[1] / TABLES[3], credit=[0.5, 0.25 + 2**-52])
    assert compare()[0] == 1


def test_a_file_of_one_folder_alone_is_named(compare, folders):
    (folders[0] / TABLES[0]).unlink()
    (folders[1] / WEIGHTS[0]).unlink()
    code, lines = compare()
    assert code == 0 and lines[-1] == "5 files compared, 0 different"
    assert {f"in only one folder: {TABLES[0]}", f"in only one folder: {WEIGHTS[0]}"} < set(lines)


def test_seconds_in_the_reports_tables_may_differ(compare, folders):
    name, text = "report/tables/cost.csv", "method,tokens,seconds\nflatGRPO,{},{}\n"
    for folder, seconds in zip(folders, (1.5, 2.5), strict=True):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text.format(7, seconds), encoding="utf-8")
    assert compare()[0] == 0
    (folders[1] / name).write_text(text.format(8, 1.5), encoding="utf-8")
    code, lines = compare()
    assert code == 1 and any(line.startswith(f"DIFFERENT {name}: ") for line in lines)


def test_folders_with_nothing_to_compare_are_not_equal(compare, folders):
    for folder in folders:
        shutil.rmtree(folder)
        folder.mkdir()
    assert compare() == (1, ["0 files compared, 0 different"])
