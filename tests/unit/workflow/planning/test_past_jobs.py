"""Past jobs as a plan reads them: their seconds and bytes."""

import os

from hgrpo.workflow.planning.jobs import benchmark_seconds, bytes_of_jobs


def test_of_several_attempts_the_last_one_counts(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"s": 100}\n{"s": 40}\n', encoding="utf-8")
    assert benchmark_seconds(path) == 40
    assert benchmark_seconds(tmp_path / "none.jsonl") is None


def write(path, size):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))


def test_bytes_are_those_of_the_folders_that_jobs_leave(tmp_path):
    write(tmp_path / "rl/A/seed_1/round_1/turns.parquet", 100)
    write(tmp_path / "rl/A/seed_1/round_1/adapter/model.safetensors", 900)
    write(tmp_path / "rl/A/seed_1/.round_2.tmp-7/turns.parquet", 5)
    write(tmp_path / "rl/B/seed_1/round_1/turns.parquet", 30)
    assert bytes_of_jobs(tmp_path, "rl_round") == {"A": [1000], "B": [30]}
    assert bytes_of_jobs(tmp_path, "evaluate") == {}


def test_jobs_that_share_a_folder_are_told_apart(tmp_path):
    write(tmp_path / "report/episodes.parquet", 50)
    assert bytes_of_jobs(tmp_path, "merge") == {"shared": [50]}
    assert bytes_of_jobs(tmp_path, "report") == {}
    write(tmp_path / "report/figures/forest.svg", 7)
    write(tmp_path / "report/report.html", 20)
    write(tmp_path / "report/tables/cost.csv", 3)
    assert bytes_of_jobs(tmp_path, "figures") == {"shared": [7]}
    # The few kilobytes of tables do not count.
    assert bytes_of_jobs(tmp_path, "report") == {"shared": [20]}


def test_a_link_weighs_what_itself_does(tmp_path):
    write(tmp_path / "elsewhere/model.safetensors", 10_000)
    (tmp_path / "base").mkdir()
    os.symlink("../elsewhere/model.safetensors", tmp_path / "base/model.safetensors")
    assert bytes_of_jobs(tmp_path, "base")["shared"] == [len("../elsewhere/model.safetensors")]


def test_of_many_folders_some_are_weighed(tmp_path):
    for number in range(1, 101):
        write(tmp_path / f"eval/A/seed_{number}/round_1/episodes.parquet", 8)
    assert bytes_of_jobs(tmp_path, "evaluate") == {"A": [8] * 20}
