"""Progress in the terminal of the run: a line when a bar has moved, and cautions."""

import subprocess
import sys
import time

from watched_study import FIRST, Watched, bar, begin

from hgrpo.progress import FINISHED

CODE = """
import sys, time
from pathlib import Path
from hgrpo.store.entry import read_plan
from hgrpo.workflow.watch import show_progress
show_progress(read_plan(Path(sys.argv[1])), every_s=0.001)
time.sleep(1)
"""
LINE = "sft: running, step 7/20, loss=0.5, 2 min left\n"


def printed(results):
    """What the terminal shows within a second."""
    command = [sys.executable, "-c", CODE, str(results)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == ""
    return done.stderr


def test_a_line_when_a_bar_has_moved():
    study = Watched()
    study.finish(*FIRST)
    begin(study.jobs["sft"], time.time(), **bar(7, 20, "step", 130.0))
    # No bar has moved, and the job has failed, which Snakemake reports.
    begin(study.jobs["merge"], time.time(), **bar(0, 20, "step"))
    begin(study.jobs["report"], time.time(), **bar(7, 20, "step"), ended="error: no")
    assert printed(study.results) == LINE


def test_cautions_of_this_run_are_printed_once_and_no_older_ones():
    study, at, later = Watched(), time.time() - 1000, time.time() + 1000
    tested = "SFTOnly seed 0 evaluation of round 0"
    study.finish(*FIRST, summary={"success": {"all": {"at_turn_cap": 0.7, "score": 0.7}}})
    summary = {"success": {"test T=0": 0.017}, "mean_return": {"test T=0": 0.017}}
    study.finish("sft", tested, summary=summary)
    for arm in ("flatGRPO", "TurnRDV2"):
        job = study.jobs[f"{arm} seed 11 round 1"]
        study.finish(job.name)
        begin(job, later, cautions=[f"Most groups are dead: {arm}."], ended=FINISHED)
    begin(study.jobs["expert"], at, cautions=["The expert solves 0.0 %."], ended=FINISHED)
    begin(study.jobs[tested], at, ended=FINISHED)
    (dead,) = printed(study.results).splitlines()
    assert dead.startswith("caution: Most groups are dead: ")
    begin(study.jobs[tested], later, ended=FINISHED)
    dead, far = sorted(printed(study.results).splitlines())
    assert dead.startswith("caution: Most groups are dead: ")
    assert far.startswith("caution: The SFT policy is far below its expert")
    assert "it solves 1.7 % of its tasks" in far
