"""Work that is left: by hand, from bars, from past jobs and from reference rates."""

import json
import time

import pytest
from watched_study import bar, begin, finish, jobs, record

from hgrpo.study.recorded import recorded_study
from hgrpo.workflow.planning.estimates import REFERENCE, Estimates
from hgrpo.workflow.watch.screen import work_left
from hgrpo.workflow.watch.status import job_statuses


def took(results, job, seconds):
    """Write down what a past job took."""
    path = results / "benchmarks" / job.stage / job.log.with_suffix(".jsonl").name
    if not job.method and job.stage in ("assets", "expert", "base", "sft"):
        path = results / job.stage / "timing.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"s": seconds}), encoding="utf-8")


@pytest.fixture
def study(tmp_path):
    """A study with its first stages done; every stage has been timed."""
    results = record(tmp_path / "results/grid")
    known = jobs(results)
    for job in known.values():
        took(results, job, 100.0 if job.method else 7.0)
    for name in ("study_config", "assets", "expert", "base", "sft"):
        finish(known[name], time.time() - 1000)
        took(results, known[name], 7.0)
    return results, known


def left(results, known):
    return work_left(recorded_study(results), results, job_statuses(known.values()))


def test_by_hand(study):
    results, known = study
    # Four rounds, a fit and five evaluations of 100 s, then three stages of 7 s.
    work = left(results, known)
    assert work == (10 * 100 + 3 * 7, "")
    now = time.time() + 100  # no time passes since the jobs wrote
    begin(known["flatGRPO seed 11 round 1"], now, **bar(16, 32, "traj", 20.0))
    assert left(results, known)[0] == 9 * 100 + 3 * 7 + 20
    # A bar that cannot tell the time left yet, but how much is done.
    begin(known["TurnRDV2 seed 11 round 1"], now, **bar(8, 32, "traj"))
    assert left(results, known)[0] == 8 * 100 + 75 + 3 * 7 + 20
    for job in known.values():
        finish(job, time.time())
    assert left(results, known)[0] == 0


def test_stages_that_have_not_run_count_with_their_estimates(study):
    results, known = study
    (results / "benchmarks/merge/merge.jsonl").unlink()
    estimate = Estimates(recorded_study(results), results).seconds("merge", "shared")
    assert estimate.source == REFERENCE
    work = left(results, known)
    assert work == (10 * 100 + 2 * 7 + estimate.value, "about ")


def test_before_any_job_the_work_is_that_of_the_plan(tmp_path):
    results = record(tmp_path / "results/grid")
    known = jobs(results)
    estimates = Estimates(recorded_study(results), results)
    expected = sum(
        estimates.seconds(job.stage, job.method or "shared").value
        for job in known.values()
        if job.stage != "study_config"
    )
    work = left(results, known)
    assert work == (pytest.approx(expected), "about ")
