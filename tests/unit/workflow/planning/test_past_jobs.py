"""What a plan takes from past jobs: whose they are, what they took and wrote."""

import json
import os

import pytest
import yaml
from travelling import imported_round

from hgrpo.study.study import load_study
from hgrpo.workflow.planning.past_jobs import (
    OTHER_ARMS,
    OTHER_STUDIES,
    OWN,
    Estimate,
    PastJobs,
    Player,
    benchmark_seconds,
    bytes_of_jobs,
    player_of,
)


def benchmark(results, study, name, seconds):
    folder = results / study / "benchmarks/rl_round"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text(json.dumps({"s": seconds}) + "\n", encoding="utf-8")


TINY = Player("tiny", "torch")


def configured(results, study, model="tiny", engine="torch"):
    """A study's resolved configuration, as far as it is read."""
    text = yaml.safe_dump({"model": {"name": model}, "engine": {"kind": engine}})
    (results / study).mkdir(parents=True, exist_ok=True)
    (results / study / "config.yaml").write_text(text, encoding="utf-8")


def seconds(results, arm):
    return PastJobs(results, "mine", TINY).seconds("rl_round", arm)


def test_the_nearest_past_jobs_are_taken(tmp_path):
    assert seconds(tmp_path, "A") is None
    configured(tmp_path, "other")
    configured(tmp_path, "another")
    benchmark(tmp_path, "other", "B.seed_1.round_1", 100)
    benchmark(tmp_path, "another", "B.seed_1.round_1", 200)
    assert seconds(tmp_path, "A") == Estimate(150, OTHER_STUDIES)
    benchmark(tmp_path, "other", "A.seed_1.round_1", 30)
    assert seconds(tmp_path, "A") == Estimate(30, OTHER_STUDIES)
    assert seconds(tmp_path, "C") == Estimate(110, OTHER_STUDIES)
    benchmark(tmp_path, "mine", "B.seed_1.round_1", 10)
    benchmark(tmp_path, "mine", "B.seed_1.round_2", 20)
    assert seconds(tmp_path, "A") == Estimate(15, OTHER_ARMS)
    benchmark(tmp_path, "mine", "A.seed_1.round_1", 7)
    assert seconds(tmp_path, "A") == Estimate(7, OWN)


def test_seconds_of_imported_jobs_count_only_where_none_ran_here(tmp_path):
    configured(tmp_path, "other")
    benchmark(tmp_path, "other", "A.seed_1.round_1", 100)
    benchmark(tmp_path, "mine", "A.seed_1.round_1", 900)
    imported_round(tmp_path / "mine", "rl/A/seed_1/round_1")
    # It is this study, but another machine.
    assert seconds(tmp_path, "A") == Estimate(900, OTHER_ARMS)
    benchmark(tmp_path, "mine", "B.seed_1.round_1", 20)
    assert seconds(tmp_path, "A") == Estimate(20, OTHER_ARMS)
    benchmark(tmp_path, "mine", "A.seed_1.round_2", 30)
    assert seconds(tmp_path, "A") == Estimate(30, OWN)


@pytest.mark.parametrize(("model", "engine"), [("qwen", "torch"), ("tiny", "vllm")])
def test_a_study_of_another_model_or_engine_says_nothing_of_its_jobs(tmp_path, model, engine):
    configured(tmp_path, "other", model, engine)
    benchmark(tmp_path, "other", "A.seed_1.round_1", 100)
    write(tmp_path / "other/rl/A/seed_1/round_1/turns.parquet", 100)
    write(tmp_path / "other/assets/timing.json", 0)
    (tmp_path / "other/assets/timing.json").write_text('{"s": 3}\n', encoding="utf-8")
    past = PastJobs(tmp_path, "mine", TINY)
    assert past.seconds("rl_round", "A") is None and past.bytes("rl_round", "A") is None
    # A stage without a model counts for every model.
    assert past.seconds("assets", "shared") == Estimate(3, OTHER_STUDIES)
    past = PastJobs(tmp_path, "mine", Player(model, engine))
    assert past.seconds("rl_round", "A") == Estimate(100, OTHER_STUDIES)
    assert past.bytes("rl_round", "A") == Estimate(100, OTHER_STUDIES)


@pytest.mark.parametrize(
    "text", [None, "", "a: [", "model: tiny", "model: {name: tiny}", b"\xff", "a: 2026-99-99"]
)
def test_a_study_without_a_readable_configuration_counts_as_of_another_model(tmp_path, text):
    benchmark(tmp_path, "other", "A.seed_1.round_1", 100)
    if text is not None:
        content = text if isinstance(text, bytes) else text.encode()
        (tmp_path / "other/config.yaml").write_bytes(content)
    assert player_of(tmp_path / "other") is None
    assert seconds(tmp_path, "A") is None


def test_a_configuration_is_read_once_however_many_stages_ask(tmp_path):
    configured(tmp_path, "other")
    benchmark(tmp_path, "other", "A.seed_1.round_1", 100)
    past = PastJobs(tmp_path, "mine", TINY)
    assert past.seconds("sft", "shared") is None
    (tmp_path / "other/config.yaml").unlink()
    assert past.seconds("rl_round", "A") == Estimate(100, OTHER_STUDIES)


def test_what_a_study_writes_down_names_its_player(project, tmp_path):
    resolved = load_study(project / "configs/studies/alfworld_qwen.yaml").resolved()
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(resolved), encoding="utf-8")
    assert player_of(tmp_path) == Player("qwen2.5-1.5b-instruct", "vllm")


@pytest.mark.parametrize("text", ["", '{"s": 1', "{}", '{"s": null}', "[]"])
def test_a_benchmark_file_that_was_cut_off_counts_for_nothing(tmp_path, text):
    benchmark(tmp_path, "mine", "A.seed_1.round_1", 7)
    (tmp_path / "mine/benchmarks/rl_round/A.seed_1.round_2.jsonl").write_text(
        text, encoding="utf-8"
    )
    assert seconds(tmp_path, "A") == Estimate(7, OWN)


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
