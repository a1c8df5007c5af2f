"""Progress in the terminal of the run: a line when a bar has moved, and cautions."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from watched_study import bar, begin, finish, jobs, record

from hgrpo.progress import FINISHED

CODE = """
import sys, time
from pathlib import Path
from hgrpo.study.recorded import recorded_study
from hgrpo.workflow.watch.jobs import study_jobs
from hgrpo.workflow.watch.terminal import show_progress
results = Path(sys.argv[1])
show_progress(study_jobs(recorded_study(results), results), every_s=0.001)
time.sleep(1)
"""
LINE = "sft: running, step 7/20, loss=0.5, 2 min left\n"


def shown(results):
    """What the terminal shows within a second."""
    command = [sys.executable, "-c", CODE, str(results)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == ""
    return done.stderr


def test_a_line_when_a_bar_has_moved(tmp_path):
    known = jobs(record(tmp_path / "grid"))
    for name in ("study_config", "assets", "expert", "base"):
        finish(known[name], time.time() - 1000)
    begin(known["sft"], time.time(), **bar(7, 20, "step", 130.0))
    assert shown(tmp_path / "grid") == LINE


def test_cautions_of_this_run_are_printed_once_and_no_older_ones(tmp_path):
    known = jobs(record(tmp_path / "grid"))
    at = time.time() - 1000
    for name in ("study_config", "assets", "expert", "base", "sft"):
        finish(known[name], at)
    tested = known["SFTOnly seed 0 evaluation of round 0"]
    finish(tested, at)
    summary(known["expert"], {"success": {"all": {"at_turn_cap": 0.7, "score": 0.7}}}, at)
    summary(tested, {"success": {"test T=0": 0.017}, "mean_return": {"test T=0": 0.017}}, at)
    later = time.time() + 1000
    for arm in ("flatGRPO", "TurnRDV2"):
        job = known[f"{arm} seed 11 round 1"]
        finish(job, at)
        begin(job, later, cautions=[f"Most groups are dead: {arm}."], ended=FINISHED)
    begin(known["expert"], at, cautions=["The expert solves 0.0 %."], ended=FINISHED)
    begin(tested, at, ended=FINISHED)
    (dead,) = shown(tmp_path / "grid").splitlines()
    assert dead.startswith("caution: Most groups are dead: ")
    begin(tested, later, ended=FINISHED)
    dead, far = sorted(shown(tmp_path / "grid").splitlines())
    assert dead.startswith("caution: Most groups are dead: ")
    assert far.startswith("caution: The SFT policy is far below its expert")
    assert "it solves 1.7 % of its tasks" in far


def summary(job, content, at):
    (path,) = [Path(path) for path in job.outputs if path.endswith("/summary.json")]
    path.write_text(json.dumps(content), encoding="utf-8")
    os.utime(path, (at, at))
