"""The state of every job, from its inputs, outputs and log."""

import time
from pathlib import Path

import pytest
from watched_study import bar, begin, finish, jobs, record

from hgrpo.learning.scratch import step_folder
from hgrpo.workflow.watch.status import State, doing, is_over, job_statuses, kept_steps
from hgrpo.workflow.watch.terminal import progress_lines

FLAT, TURNRD = "flatGRPO seed 11", "TurnRDV2 seed 11"
PROGRESS = bar(35, "7/20", "02:10", "step")


@pytest.fixture
def known(tmp_path):
    """The jobs of a study that ran up to the base model, 1,000 s ago."""
    found = jobs(record(tmp_path / "grid"))
    for name in ("study_config", "assets", "expert", "base"):
        finish(found[name], time.time() - 1000)
    return found


def state(job):
    (status,) = job_statuses([job])
    return status.state


def test_the_jobs_of_a_study(known):
    assert list(known) == [
        *("study_config", "assets", "expert", "base", "sft"),
        *(f"{run} round {number}" for run in (FLAT, TURNRD) for number in (1, 2)),
        f"{TURNRD} fit after round 1",
        "SFTOnly seed 0 evaluation of round 0",
        *(f"{run} evaluation of round {number}" for run in (FLAT, TURNRD) for number in (1, 2)),
        *("merge", "figures", "report"),
    ]


def test_queued_waits_for_a_core_and_not_started_for_other_jobs(known):
    assert state(known["base"]) is State.DONE
    assert state(known["sft"]) is State.QUEUED
    assert state(known[f"{FLAT} round 1"]) is State.NOT_STARTED
    finish(known["sft"], time.time() - 900)
    finish(known[f"{TURNRD} round 1"], time.time() - 800)
    # Round 2 of TurnRD needs the fit as well.
    assert state(known[f"{TURNRD} fit after round 1"]) is State.QUEUED
    assert state(known[f"{TURNRD} round 2"]) is State.NOT_STARTED
    assert state(known[f"{TURNRD} evaluation of round 1"]) is State.QUEUED
    assert state(known["merge"]) is State.NOT_STARTED


@pytest.mark.parametrize(
    ("text", "age", "expected", "said"),
    [
        ("", 1, State.RUNNING, "running"),
        (PROGRESS, 10, State.RUNNING, "running, step 7/20, 2 min left"),
        (
            PROGRESS.replace("loss=0.5", "test=0.324"),
            10,
            State.RUNNING,
            "running, step 7/20, test 32.4%, 2 min left",
        ),
        (PROGRESS, 720, State.SILENT, "last heard 12 min ago, step 7/20"),
        (f"{PROGRESS}\nerror: no\n", 5, State.STOPPED, "failed 5 s ago, step 7/20"),
        (
            f"{PROGRESS}\ninterrupted: run the same command again\n",
            720,
            State.STOPPED,
            "interrupted 12 min ago, step 7/20",
        ),
        # Of an earlier run: older than the job's inputs.
        (PROGRESS, 5000, State.QUEUED, "queued"),
        ("error: no\n", 5000, State.QUEUED, "queued"),
    ],
)
def test_a_job_that_began(known, text, age, expected, said):
    begin(known["sft"], text, time.time() - age)
    (status,) = job_statuses([known["sft"]])
    assert (status.state, doing(status)) == (expected, said)


def test_the_time_left_goes_down_between_two_updates_of_a_bar(known):
    for age, left in ((0, 130), (30, 100), (119, 11)):
        begin(known["sft"], PROGRESS, time.time() - age)
        (status,) = job_statuses([known["sft"]])
        assert status.left_s == pytest.approx(left, abs=5)
    begin(known["sft"], bar(99, "99/100", "00:01", "step"), time.time() - 60)
    assert job_statuses([known["sft"]])[0].left_s == 0


def test_the_terminal_of_a_run_shows_only_jobs_that_run(known):
    assert progress_lines(job_statuses(known.values())) == []
    begin(known["sft"], bar(0, "0/20", "?", "step"), time.time())
    assert progress_lines(job_statuses(known.values())) == []
    begin(known["sft"], PROGRESS, time.time() - 10)
    assert progress_lines(job_statuses(known.values())) == ["sft: running, step 7/20, 2 min left"]
    begin(known["sft"], PROGRESS, time.time() - 300)
    assert progress_lines(job_statuses(known.values())) == []


def finished(known, report_at):
    for number, job in enumerate(known.values()):
        finish(job, report_at if job.stage == "report" else 1e9 + number)


def test_a_study_is_over_when_its_report_is_newer_than_its_inputs(known):
    finished(known, report_at=1.5e9)
    begin(known["report"], "finding\n", time.time())
    assert is_over(job_statuses(known.values()))
    for late in (known["merge"], known["figures"]):
        finish(late, 1.5e9 + 1)
        assert not is_over(job_statuses(known.values()))
        finish(late, 1e9)
    # The report's job is about to print what it found.
    finish(known["report"], time.time())
    assert not is_over(job_statuses(known.values()))
    # Copies are of any age. Where nothing was written for minutes, nothing goes on.
    finish(known["merge"], 1.5e9 + 1)
    begin(known["report"], "finding\n", time.time() - 500)
    assert is_over(job_statuses(known.values()))


def test_a_study_with_an_unfinished_job_is_not_over(known):
    finished(known, report_at=2e9)
    for path in known["figures"].outputs:
        Path(path).unlink()
    assert not is_over(job_statuses(known.values()))


def test_kept_steps(known):
    job = known[f"{FLAT} round 1"]
    assert kept_steps(job) == kept_steps(known["merge"]) == 0
    (job.scratch / "key").mkdir(parents=True)
    (job.scratch / "lock").touch()
    assert kept_steps(job) == 0
    step_folder(job.scratch / "key", 3).mkdir()
    step_folder(job.scratch / "key", 11).mkdir()
    assert kept_steps(job) == 12


def test_results_of_other_settings_and_all_that_read_them_are_not_done(known):
    for job in known.values():
        finish(job, time.time() - 900)
    assert {status.state for status in job_statuses(known.values())} == {State.DONE}
    first = known[f"{FLAT} round 1"]
    (path,) = [Path(path) for path in first.outputs if path.endswith("/summary.json")]
    path.write_text('{"settings": "of an earlier run"}', encoding="utf-8")
    statuses = job_statuses(known.values())
    begun = {status.job.name for status in statuses if status.state is not State.DONE}
    assert {f"{FLAT} round 1", f"{FLAT} round 2", "merge", "report"} < begun
    assert not [name for name in begun if name.startswith((TURNRD, "SFTOnly", "sft"))]
