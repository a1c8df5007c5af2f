"""The state of every job, from its record in the store and its progress."""

import time

import pytest
from watched_study import FIRST, Watched, bar, begin

from hgrpo.progress import FINISHED, INTERRUPTED
from hgrpo.workflow.watch import State, doing, status_of

FLAT, TURNRD = "flatGRPO seed 11", "TurnRDV2 seed 11"
PROGRESS = bar(7, 20, "step", 130.0)


@pytest.fixture
def study():
    """A study that ran up to the base model."""
    study = Watched()
    study.finish(*FIRST)
    return study


@pytest.fixture
def jobs(study):
    """The jobs of this study by their names."""
    return study.jobs


def test_the_jobs_of_a_study(jobs):
    assert list(jobs) == [
        *("study_config", "assets", "expert", "base", "sft"),
        *(f"{run} round {number}" for run in (FLAT, TURNRD) for number in (1, 2)),
        f"{TURNRD} fit after round 1",
        "SFTOnly seed 0 evaluation of round 0",
        *(f"{run} evaluation of round {number}" for run in (FLAT, TURNRD) for number in (1, 2)),
        *("merge", "figures", "report"),
    ]


@pytest.mark.parametrize(
    ("changes", "age", "expected", "text"),
    [
        ({}, 1, State.RUNNING, "running"),
        (PROGRESS, 10, State.RUNNING, "running, step 7/20, loss=0.5, 2 min left"),
        (PROGRESS | {"total": 0, "left_s": None}, 10, State.RUNNING, "running, step 7, loss=0.5"),
        (
            PROGRESS,
            720,
            State.RUNNING,
            "running, last heard 12 min ago, step 7/20, loss=0.5, 0 s left",
        ),
        (PROGRESS | {"ended": "error: no"}, 300, State.FAILED, "failed 5 min ago: no"),
        (PROGRESS | {"ended": "OSError: x"}, 300, State.FAILED, "failed 5 min ago: OSError: x"),
        (PROGRESS | {"ended": INTERRUPTED}, 720, State.FAILED, "interrupted 12 min ago"),
        (
            PROGRESS | {"pid": 2**30},
            60,
            State.FAILED,
            "failed 1 min ago: ended without a message; probably killed",
        ),
        # On another machine only its silence shows.
        (
            PROGRESS | {"pid": 2**30, "host": "node7"},
            60,
            State.RUNNING,
            "running, step 7/20, loss=0.5, 1 min left",
        ),
        # Of an earlier run, whose results have gone.
        (PROGRESS | {"ended": FINISHED}, 5, State.WAITING, "waiting"),
    ],
)
def test_a_job_that_began(jobs, changes, age, expected, text):
    begin(jobs["sft"], time.time() - age, **changes)
    status = status_of(jobs["sft"])
    assert (status.state, doing(status)) == (expected, text)


def test_the_time_left_goes_down_between_two_updates_of_a_bar(jobs):
    for age, left in ((0, 130), (30, 100), (119, 11), (300, 0)):
        begin(jobs["sft"], time.time() - age, **PROGRESS)
        status = status_of(jobs["sft"])
        assert status.left_s == pytest.approx(left, abs=5)
