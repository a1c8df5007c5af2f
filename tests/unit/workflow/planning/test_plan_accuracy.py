"""A plan held against what its jobs took."""

import json
import os

import pytest
from travelling import imported_round

from hgrpo.errors import UserError
from hgrpo.study.resources import StageResources
from hgrpo.workflow.planning.accuracy import check_lines, save_plan
from hgrpo.workflow.planning.estimates import Estimate
from hgrpo.workflow.planning.forecast import Forecast
from hgrpo.workflow.planning.jobs import Job


def forecast(stage, folder, seconds, to_run=True):
    job = Job(stage, f"results/s/{folder}", to_run)
    return Forecast(job, Estimate(seconds), Estimate(0), StageResources())


PLANNED = [
    forecast("sft", "sft", 100, to_run=False),
    forecast("rl_round", "rl/A/seed_1/round_1", 50),
    forecast("rl_round", "rl/A/seed_1/round_2", 50),
    forecast("rl_round", "rl/A/seed_1/round_3", 50),
    forecast("evaluate", "eval/A/seed_1/round_1", 20),
    forecast("figures", "report/figures", 2),
]
SETTINGS = {"seeds": [1], "rounds": 3}
ASKED = {"settings": ["study=s"], "study": SETTINGS}


@pytest.fixture
def ran(tmp_path):
    """Makes a job's benchmark and log as old as it is told to, against the plan's age."""

    def write(stage, name, seconds, later=1):
        log = tmp_path / "logs" / stage / f"{name}.log"
        path = tmp_path / "benchmarks" / stage / f"{name}.jsonl"
        for file in (log, path):
            file.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        path.write_text(json.dumps({"s": seconds}) + "\n", encoding="utf-8")
        at = (tmp_path / "plan.json").stat().st_mtime + later
        for file in (log, path):
            os.utime(file, (at, at))

    return write


def test_jobs_that_have_run_since_are_compared_and_no_others(tmp_path, ran):
    assert check_lines(tmp_path, SETTINGS) == []
    save_plan(tmp_path, PLANNED, ASKED)
    assert check_lines(tmp_path, SETTINGS) == []
    ran("sft", "sft", 999)  # was finished when the plan was made, so it is not in it
    ran("rl_round", "A.seed_1.round_1", 40)
    ran("rl_round", "A.seed_1.round_2", 45)
    ran("rl_round", "A.seed_1.round_3", 999, later=-1)  # not since
    ran("rl_round", "B.seed_1.round_1", 999)  # another run's
    ran("evaluate", "A.seed_1.round_1", 25)
    ran("figures", "figures", 3)
    # 50 + 50 + 20 + 2 planned, 40 + 45 + 25 + 3 taken.
    assert check_lines(tmp_path, SETTINGS) == [
        "plan:    planned 122 s, took 113 s (-7 %); 4 of its 5 jobs have run",
        "         rl_round          2 jobs: planned 100.0 s, took 85.0 s (-15 %)",
        "         evaluate          1 jobs: planned 20.0 s, took 25.0 s (+25 %)",
        "         figures           1 jobs: planned 2.0 s, took 3.0 s (+50 %)",
    ]
    assert len(check_lines(tmp_path, SETTINGS, by_stage=False)) == 1


def test_a_job_that_was_only_touched_or_imported_has_not_run(tmp_path, ran):
    save_plan(tmp_path, PLANNED, ASKED)
    ran("rl_round", "A.seed_1.round_1", 40, later=-1)
    # What `snakemake --touch` does to a job's files: outputs and benchmark, but not the log.
    os.utime(tmp_path / "benchmarks/rl_round/A.seed_1.round_1.jsonl")
    assert check_lines(tmp_path, SETTINGS) == []
    # A colleague's job may have ended after the plan was made here.
    ran("rl_round", "A.seed_1.round_2", 45)
    imported_round(tmp_path, "rl/A/seed_1/round_2")
    assert check_lines(tmp_path, SETTINGS) == []


def test_jobs_taken_from_another_study_are_counted_and_not_timed(tmp_path, ran):
    save_plan(tmp_path, PLANNED, ASKED)
    for number in (1, 2):
        record = tmp_path / f"rl/A/seed_1/round_{number}/.finished.json"
        record.parent.mkdir(parents=True)
        record.write_text(
            json.dumps({"key": "k", "files": {}, "taken_from": "results/t/rl"}), encoding="utf-8"
        )
        ran("rl_round", f"A.seed_1.round_{number}", 1)
    taken = "2 were taken from other studies"
    assert check_lines(tmp_path, SETTINGS) == [f"plan:    0 of its 5 jobs have run, {taken}"]
    ran("evaluate", "A.seed_1.round_1", 25)
    assert check_lines(tmp_path, SETTINGS, by_stage=False) == [
        f"plan:    planned 20 s, took 25 s (+25 %); 1 of its 5 jobs have run, {taken}"
    ]


def test_a_plan_for_other_settings_is_not_compared(tmp_path, ran):
    save_plan(tmp_path, PLANNED, ASKED | {"study": {"seeds": [1], "rounds": 2}})
    ran("rl_round", "A.seed_1.round_1", 40)
    assert check_lines(tmp_path, SETTINGS) == []


def test_a_plan_that_does_not_say_what_it_was_made_for_is_not_compared(tmp_path, ran):
    save_plan(tmp_path, PLANNED, {"settings": ["study=s"]})
    ran("rl_round", "A.seed_1.round_1", 40)
    assert check_lines(tmp_path, SETTINGS) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"jobs": [{"stage": "sft", "name": "sft", "seconds": null}], "asked": {}}',
        '{"jobs": [1]}',
        '{"jobs": [], "asked": []}',
    ],
)
def test_a_damaged_plan_is_named(tmp_path, text):
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"plan\.json: not a plan; delete it"):
        check_lines(tmp_path, SETTINGS)
