"""Work that is left: by hand, from bars and from past jobs of this study and of others."""

import json
import time

import pytest
from watched_study import bar, begin, finish, jobs, record

from hgrpo.study.recorded import recorded_study
from hgrpo.workflow.watch.status import job_statuses
from hgrpo.workflow.watch.time_left import work_left


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
    assert (work.seconds, work.known) == (10 * 100 + 3 * 7, "")
    begin(known["flatGRPO seed 11 round 1"], bar(50, "16/32", "00:20", "traj"), time.time())
    assert left(results, known).seconds == pytest.approx(9 * 100 + 3 * 7 + 20, abs=2)
    # A bar that cannot tell the time left yet, but how much is done.
    begin(known["TurnRDV2 seed 11 round 1"], bar(25, "8/32", "?", "traj"), time.time())
    assert left(results, known).seconds == pytest.approx(8 * 100 + 75 + 3 * 7 + 20, abs=2)
    for job in known.values():
        finish(job, time.time())
    assert left(results, known).seconds == 0


def test_times_of_other_studies_are_rough_and_no_times_are_a_least(study, tmp_path):
    results, known = study
    other = record(tmp_path / "results/other")
    took(other, jobs(other)["merge"], 50.0)
    (results / "benchmarks/merge/merge.jsonl").unlink()
    work = left(results, known)
    assert (work.seconds, work.known) == (10 * 100 + 2 * 7 + 50, "roughly")
    (results / "benchmarks/figures/figures.jsonl").unlink()
    work = left(results, known)
    assert (work.seconds, work.known) == (10 * 100 + 7 + 50, "at least")
