"""The monitor's screen from a study's first job to its report, and the work that is left."""

import re
import time

import pytest
from watched_study import FIRST, Watched, bar, begin

from hgrpo.cli.monitor import look
from hgrpo.workflow import watch
from hgrpo.workflow.planning.estimates import REFERENCE, Estimates

POSTFIX = "step=3, success=0.50, reward=0.250, KL=0.0010, dead=3/16"


def test_a_study_from_its_first_job_to_its_report():
    study = Watched()
    jobs = study.jobs

    def lines():
        return look(study.results)[0].splitlines()

    assert lines()[0] == "smoke: 1 of 18 jobs done"
    assert re.fullmatch(r"about \d+ (s|min) of work left; nothing is running", lines()[1])
    study.finish(*FIRST)
    begin(jobs["sft"], time.time(), **bar(7, 20, "step", 130.0))
    assert lines()[-1] == "sft: running, step 7/20, loss=0.5, 2 min left"
    assert re.fullmatch(r"about \d+ min of work left; 1 job is running", lines()[1])
    study.finish("sft")
    now = time.time() + 100  # no time passes since the jobs wrote
    first = jobs["flatGRPO seed 11 round 1"]
    begin(first, now, **bar(16, 32, "traj", 20.0) | {"postfix": POSTFIX})
    begin(jobs["TurnRDV2 seed 11 round 1"], time.time() - 300, ended="error: no")
    begin(jobs["TurnRDV2 seed 11 round 2"], now, **bar(8, 32, "traj", 40.0))
    words = r"about \d+ (s|min) of work left; with 2 jobs in parallel, about \d+ (s|min)"
    assert re.fullmatch(words, lines()[1])
    rows = {line.split()[0]: line.split()[1:] for line in lines() if line}
    assert rows["stage"] == ["done", "running", "failed", "waiting"]
    assert (rows["rl_round"], rows["merge"], rows["sft"]) == (["2", "1", "1"], ["1"], ["1"])
    assert lines()[-3:] == [
        f"flatGRPO seed 11 round 1: running, traj 16/32, {POSTFIX}, 20 s left",
        "TurnRDV2 seed 11 round 1: failed 5 min ago: no",
        "TurnRDV2 seed 11 round 2: running, traj 8/32, loss=0.5, 40 s left",
    ]
    study.finish(*jobs)
    assert lines()[:2] == ["smoke: 18 of 18 jobs done", ""]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(4.4, "4 s"), (59.6, "1 min"), (3599, "1 h 00 min"), (11_100, "3 h 05 min")],
)
def test_durations(seconds, text):
    assert watch.duration(seconds) == text


def test_work_left_by_hand(monkeypatch):
    """From bars, from past jobs, and from reference rates for stages that have not run."""
    study = Watched()
    study.finish(*FIRST, "sft")
    past = {}
    for job in study.jobs.values():
        settings = study.plan.parts(job.stage, job.job.method or None)["settings"]
        past[job.stage, settings] = [(100.0 if job.job.method else 7.0, 1.0)]
    monkeypatch.setattr(watch, "Estimates", lambda plan: Estimates(plan, past))

    def left():
        return watch.work_left(study.plan.study, [*map(watch.status_of, study.jobs.values())])

    # Four rounds, a fit and five evaluations of 100 s, then three stages of 7 s.
    assert left() == (10 * 100 + 3 * 7, "")
    now = time.time() + 100  # no time passes since the jobs wrote
    begin(study.jobs["flatGRPO seed 11 round 1"], now, **bar(16, 32, "traj", 20.0))
    assert left()[0] == 9 * 100 + 3 * 7 + 20
    # A bar without an estimate of the time left, but with the share that is done.
    begin(study.jobs["TurnRDV2 seed 11 round 1"], now, **bar(8, 32, "traj"))
    assert left()[0] == 8 * 100 + 75 + 3 * 7 + 20
    del past["merge", study.plan.parts("merge", None)["settings"]]
    estimate = Estimates(study.plan, past).seconds("merge", "shared")
    assert estimate.source == REFERENCE
    assert left() == (8 * 100 + 75 + 2 * 7 + 20 + estimate.value, "about ")
    study.finish(*study.jobs)
    assert left()[0] == 0
