"""Work that is left: by hand, from bars, from past jobs and from reference rates."""

import time

import pytest
from watched_study import FIRST, Watched, bar, begin

from hgrpo.workflow.planning.estimates import REFERENCE, Estimates
from hgrpo.workflow.watch import screen
from hgrpo.workflow.watch.status import job_statuses


@pytest.fixture
def study(monkeypatch):
    """A study with its first stages done; of every stage there are past jobs."""
    study = Watched()
    study.finish(*FIRST, "sft")
    past = {}
    for job in study.jobs.values():
        settings = study.plan.parts(job.stage, job.job.method or None)["settings"]
        past[job.stage, settings] = [(100.0 if job.job.method else 7.0, 1.0)]
    monkeypatch.setattr(screen, "Estimates", lambda plan: Estimates(plan, past))
    return study, past


def left(study):
    return screen.work_left(study.plan.study, job_statuses(study.jobs.values()))


def test_by_hand(study):
    study, _ = study
    # Four rounds, a fit and five evaluations of 100 s, then three stages of 7 s.
    assert left(study) == (10 * 100 + 3 * 7, "")
    now = time.time() + 100  # no time passes since the jobs wrote
    begin(study.jobs["flatGRPO seed 11 round 1"], now, **bar(16, 32, "traj", 20.0))
    assert left(study)[0] == 9 * 100 + 3 * 7 + 20
    # A bar that cannot tell the time left yet, but how much is done.
    begin(study.jobs["TurnRDV2 seed 11 round 1"], now, **bar(8, 32, "traj"))
    assert left(study)[0] == 8 * 100 + 75 + 3 * 7 + 20
    study.finish(*study.jobs)
    assert left(study)[0] == 0


def test_stages_that_have_not_run_count_with_their_estimates(study):
    study, past = study
    del past["merge", study.plan.parts("merge", None)["settings"]]
    estimate = Estimates(study.plan, past).seconds("merge", "shared")
    assert estimate.source == REFERENCE
    assert left(study) == (10 * 100 + 2 * 7 + estimate.value, "about ")


def test_before_any_job_the_work_is_that_of_the_plan():
    study = Watched()
    estimates = Estimates(study.plan, {})
    expected = sum(
        estimates.seconds(job.stage, job.arm).value
        for job in study.jobs.values()
        if job.stage != "study_config"
    )
    assert left(study) == (pytest.approx(expected), "about ")
