"""Which jobs are equal, and what may be taken from another study."""

import contextlib
import itertools
import json
import multiprocessing
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from stage_settings import run_stage, stage_settings

from hgrpo.atomic import atomic_folder
from hgrpo.base_model.digest import write_summary
from hgrpo.base_model.safetensors_file import write_with_checksum
from hgrpo.errors import UserError
from hgrpo.stages.job import Job
from hgrpo.stages.order import STAGES, load
from hgrpo.study.study import load_study
from hgrpo.workflow.planning.jobs import seconds_of_jobs
from hgrpo.workflow.reuse import (
    RECORD,
    REUSE_VARIABLE,
    ReusableJob,
    job_key,
    machine,
    reusable_job,
    switch,
    was_taken,
)

PLACE = "rl/flatGRPO/seed_11/round_1"
FILES = {"turns.parquet": b"turns", "adapter/model.safetensors": b"weights"}
JOB = Job("", 11, 1, "code")


def job(results: Path, study: str, key: str = "k", place: str = PLACE) -> ReusableJob:
    return ReusableJob(results / study, results / study / place, key)


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def read(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != RECORD]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def first(tmp_path) -> ReusableJob:
    """A job of the study `first`, finished and recorded; its folder is below tmp_path."""
    found = job(tmp_path, "first")
    write(found.out, FILES)
    found.record()
    return found


@pytest.fixture
def inputs(tmp_path) -> list[Path]:
    write(tmp_path / "in", {"panels.json": b"panels", "tasks.tar.gz": b"tasks"})
    return [tmp_path / "in/panels.json", tmp_path / "in/tasks.tar.gz"]


def test_an_equal_job_gets_the_same_files_and_a_record_of_where_they_are_from(
    first, tmp_path, capsys
):
    second = job(tmp_path, "second")
    assert second.take()
    assert capsys.readouterr().out == (f"taken from {first.out}, where an equal job has finished\n")
    assert read(second.out) == FILES
    assert json.loads((second.out / RECORD).read_bytes())["taken_from"] == str(first.out)
    assert was_taken(second.out) and not was_taken(first.out)
    # Copies, not links: Snakemake sets the times of a job's outputs.
    assert (second.out / "turns.parquet").stat().st_nlink == 1
    # What was taken can be taken again, also when its source is gone.
    (first.out / "turns.parquet").unlink()
    assert job(tmp_path, "third").take()


@pytest.mark.parametrize(
    ("key", "place"), [("other", PLACE), ("k", PLACE.replace("flatGRPO", "Progressive"))]
)
def test_another_key_or_another_arm_takes_nothing(first, tmp_path, key, place):
    second = job(tmp_path, "second", key, place)
    assert not second.take()
    assert not second.out.exists()


def test_a_job_takes_nothing_from_its_own_folder(first):
    before = (first.out / RECORD).stat().st_mtime_ns
    assert not first.take()
    assert (first.out / RECORD).stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", ["edited", "cut", "deleted", "folder"])
def test_a_damaged_source_is_named_and_not_taken(first, tmp_path, capsys, damage):
    path = first.out / "adapter/model.safetensors"
    if damage == "edited":
        path.write_bytes(b"WEIGHTS")
    elif damage == "cut":
        path.write_bytes(b"weigh")
    else:
        path.unlink()
    if damage == "folder":
        path.mkdir()
    second = job(tmp_path, "second")
    assert not second.take()
    assert capsys.readouterr().out.startswith(f"not taken from {first.out}: ")
    assert not second.out.exists()
    assert [found.name for found in second.out.parent.iterdir()] == []


def test_a_whole_source_is_found_beside_a_damaged_one(first, tmp_path):
    other = job(tmp_path, "other")
    assert other.take()
    (first.out / "turns.parquet").write_bytes(b"edited")
    second = job(tmp_path, "second")
    assert second.take()
    assert read(second.out) == FILES


@pytest.mark.parametrize(
    "record",
    [
        "",
        "[]",
        '{"key": "k"}',
        '{"key": "k", "files": {"../../escaped": "0"}}',
        '{"key": "k", "files": {"/tmp/escaped": "0"}}',
    ],
)
def test_a_record_that_is_none_is_passed_over(first, tmp_path, record):
    (first.out / RECORD).write_text(record, encoding="utf-8")
    assert not job(tmp_path, "second").take()
    assert not was_taken(first.out)


def test_what_other_jobs_unpack_beside_the_results_is_not_taken(tmp_path):
    first = job(tmp_path, "first")
    write(first.out, FILES | {".tasks/game.json": b"{}"})
    first.record()
    second = job(tmp_path, "second")
    assert second.take()
    assert read(second.out) == FILES


def test_results_replace_what_an_earlier_job_left(first, tmp_path):
    second = job(tmp_path, "second")
    write(second.out, {"turns.parquet": b"old", "left.json": b"old"})
    assert second.take()
    assert read(second.out) == FILES


def _rewrite(results: Path, stop: Event) -> None:
    """Write the first study's job again and again; every second time its files differ."""
    for number in itertools.count():
        with atomic_folder(results / "first" / PLACE) as out:
            write(out, FILES if number % 2 else FILES | {"turns.parquet": b"others"})
        if number % 2:
            job(results, "first").record()
            if stop.wait(0.01):
                return


def _take(results: Path, study: str, queue: multiprocessing.Queue) -> None:
    """Put what a job of `study` holds after each of its first five successes."""
    taken = 0
    while taken < 5:
        mine = job(results, study)
        if mine.take():
            taken += 1
            queue.put(read(mine.out))


def test_studies_that_run_at_the_same_time_get_whole_results_or_none(first, tmp_path):
    context = multiprocessing.get_context("fork")
    queue, stop = context.Queue(), context.Event()
    takers = [context.Process(target=_take, args=(tmp_path, f"s{n}", queue)) for n in range(3)]
    writer = context.Process(target=_rewrite, args=(tmp_path, stop))
    for process in (writer, *takers):
        process.start()
    assert all(queue.get(timeout=120) == FILES for _ in range(15))
    stop.set()
    for process in (writer, *takers):
        process.join()
        assert process.exitcode == 0


def test_everything_that_decides_a_result_decides_the_key(inputs):
    settings, here = {"lr": 1.0, "alpha": 1.0}, machine("alfworld")
    key = job_key("rl_round", settings, JOB, inputs, here)
    assert key == job_key("rl_round", dict(reversed(settings.items())), JOB, inputs, here)
    others = [
        job_key("evaluate", settings, JOB, inputs, here),
        job_key("rl_round", settings | {"lr": 2.0}, JOB, inputs, here),
        job_key("rl_round", settings, Job("flatGRPO", 11, 1, "code"), inputs, here),
        job_key("rl_round", settings, Job("", 12, 1, "code"), inputs, here),
        job_key("rl_round", settings, Job("", 11, 2, "code"), inputs, here),
        job_key("rl_round", settings, Job("", 11, 1, "edited"), inputs, here),
        job_key("rl_round", settings, JOB, inputs[::-1], here),
        job_key("rl_round", settings, JOB, inputs[:1], here),
        job_key("rl_round", settings, JOB, inputs, here | {"threads": 7}),
        job_key("rl_round", settings, JOB, inputs, here | {"packages": {"torch": "0"}}),
    ]
    inputs[0].write_bytes(b"panels of other games")
    others.append(job_key("rl_round", settings, JOB, inputs, here))
    assert len({key, *others}) == 1 + len(others)


def test_the_folder_of_an_input_does_not_decide_the_key(inputs, tmp_path):
    write(tmp_path / "elsewhere", {path.name: path.read_bytes() for path in inputs})
    there = [tmp_path / "elsewhere" / path.name for path in inputs]
    keys = [job_key("sft", {}, JOB, files, {}) for files in (inputs, there)]
    assert keys[0] == keys[1]


def test_a_base_models_weights_are_known_by_their_digest(tmp_path):
    def key(content: bytes) -> str:
        write_with_checksum(content, tmp_path / "model.safetensors")
        write_summary(tmp_path, 3)
        names = ("model.safetensors", "summary.json")
        return job_key("sft", {}, JOB, [tmp_path / name for name in names], {})

    empty = b"\x02\0\0\0\0\0\0\0{}"
    first = key(empty)
    assert key(empty) == first
    (tmp_path / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(UserError, match="3 bytes"):
        job_key("sft", {}, JOB, [tmp_path / n for n in ("model.safetensors", "summary.json")], {})


@pytest.fixture
def study(project):
    return load_study(project / "configs/studies/smoke.yaml")


def settings_of(stage: str, study, method: str | None = None, **changes):
    given = stage_settings(study, stage, method) | changes
    return load(stage).Settings.model_validate(given)


def test_a_stage_that_reads_the_users_files_always_runs(study, project, tmp_path, monkeypatch):
    official = load_study(
        project / "configs/studies/alfworld_qwen.yaml"
    )  # games and a model's folder of the user
    for stage in ("assets", "base"):
        for given, runs in ((study, False), (official, True)):
            monkeypatch.setenv(REUSE_VARIABLE, str(tmp_path))
            mine = reusable_job(load(stage), settings_of(stage, given), JOB, [], tmp_path / stage)
            assert (mine is None) == runs


def test_the_variable_turns_reuse_on_for_one_process(study, tmp_path, monkeypatch):
    settings = settings_of("assets", study)
    monkeypatch.setenv(REUSE_VARIABLE, "")
    assert reusable_job(load("assets"), settings, JOB, [], tmp_path / "assets") is None
    monkeypatch.setenv(REUSE_VARIABLE, str(tmp_path))
    assert reusable_job(load("assets"), settings, JOB, [], tmp_path / "assets") is not None
    # A second look finds no variable: processes that a round starts take nothing themselves.
    assert reusable_job(load("assets"), settings, JOB, [], tmp_path / "assets") is None


def test_stages_that_name_the_study_or_its_arms_always_run():
    found = {stage for stage in STAGES if "reusable" in vars(load(stage))}
    assert found.isdisjoint({"study_config", "merge", "figures", "report", "credit_agreement"})


def test_a_label_does_not_decide_a_rounds_key_and_a_setting_does(study, tmp_path, monkeypatch):
    def key(**changes) -> str:
        method = study.methods["Progressive"].model_copy(update=changes)
        other = type(study)(**{**vars(study), "methods": study.methods | {"Progressive": method}})
        monkeypatch.setenv(REUSE_VARIABLE, str(tmp_path))
        settings = settings_of("rl_round", other, "Progressive")
        return reusable_job(load("rl_round"), settings, JOB, [], tmp_path / PLACE).key

    assert key() == key(label="Progress, as in the paper")
    assert key() != key(alpha=0.25)


def test_a_command_takes_what_the_same_command_made_in_another_study(
    study, tmp_path, monkeypatch, capsys
):
    def run(name: str, seed: int = 0) -> Path:
        monkeypatch.setenv(REUSE_VARIABLE, str(tmp_path / name))
        out = tmp_path / name / "assets"
        config = json.dumps(stage_settings(study, "assets"))
        run_stage("assets", "--config", config, "--seed", seed, "--out", out)
        return out

    first = run("first")
    assert "taken from" not in capsys.readouterr().out
    second = run("second")
    assert capsys.readouterr().out == f"taken from {first}, where an equal job has finished\n"
    assert read(first) == read(second)
    assert {"panels.json", "tasks.tar.gz", "manifest.json", "timing.json"} == set(read(second))
    other = run("third", seed=1)
    assert "taken from" not in capsys.readouterr().out
    assert read(other)["panels.json"] != read(first)["panels.json"]


@pytest.mark.parametrize(("code", "recorded"), [(None, True), (1, False)])
def test_a_job_whose_processes_ended_well_is_recorded(study, tmp_path, monkeypatch, code, recorded):
    def run(settings, job, paths):
        write(paths.out, FILES)
        raise SystemExit(code)

    # A round on several GPUs ends so.
    monkeypatch.setattr(load("assets"), "run", run)
    monkeypatch.setenv(REUSE_VARIABLE, str(tmp_path / "first"))
    out, config = tmp_path / "first/assets", json.dumps(stage_settings(study, "assets"))
    with contextlib.nullcontext() if recorded else pytest.raises(SystemExit):
        run_stage("assets", "--config", config, "--out", out)
    assert (out / RECORD).exists() == recorded


def test_a_plan_learns_nothing_from_the_seconds_of_copying(first, tmp_path):
    taken = job(tmp_path, "second")
    assert taken.take()
    for study, seconds in (("first", 60.0), ("second", 1.5)):
        path = tmp_path / study / "benchmarks/rl_round/flatGRPO.seed_11.round_1.jsonl"
        write(path.parent, {path.name: json.dumps({"s": seconds}).encode()})
    assert seconds_of_jobs(tmp_path / "first", "rl_round") == {"flatGRPO": [60.0]}
    assert seconds_of_jobs(tmp_path / "second", "rl_round") == {}


@pytest.mark.parametrize(("given", "found"), [("no", False), ("Yes", True), (False, False)])
def test_the_switch_says_yes_or_no(given, found):
    assert switch(given) is found


def test_the_switch_knows_nothing_else():
    with pytest.raises(UserError, match="command line: reuse: yes or no was expected, not 'maybe'"):
        switch("maybe")
