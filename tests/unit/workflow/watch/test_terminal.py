"""Progress in the terminal of the run: a line when a bar has moved, and a clean end."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from watched_study import bar, begin, finish, jobs, record

from hgrpo.workflow.watch.terminal import cautions

CODE = """
import sys, time
from pathlib import Path
from hgrpo.study.recorded import recorded_study
from hgrpo.workflow.watch.jobs import study_jobs
from hgrpo.workflow.watch.terminal import show_progress
results = Path(sys.argv[1])
show_progress(
    study_jobs(recorded_study(results), results), lambda: sys.argv[2:], every_s=0.001
)
time.sleep(1)
"""


def test_a_line_when_a_bar_has_moved(tmp_path):
    known = jobs(record(tmp_path / "grid"))
    for name in ("study_config", "assets", "expert", "base"):
        finish(known[name], time.time() - 1000)
    begin(known["sft"], bar(35, "7/20", "02:10", "step"), time.time())
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "grid")],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "sft: running, step 7/20, 2 min left\n")


def test_a_poor_start_is_said_once_while_the_study_runs(tmp_path):
    known = jobs(record(tmp_path / "grid"))
    at = time.time() - 1000
    for name in ("study_config", "assets", "expert", "base", "sft"):
        finish(known[name], at)
    rate = {"at_turn_cap": 0.7, "score": 0.7}
    summary(known["expert"], {"success": {"all": rate}}, at)
    assert cautions(list(known.values())) == {}
    begin(known["expert"], "caution: The expert solves 0.0 %.\n", at)
    assert list(cautions([known["expert"]]).values()) == ["caution: The expert solves 0.0 %."]
    known["expert"].log.unlink()
    tested = known["SFTOnly seed 0 evaluation of round 0"]
    finish(tested, at)
    summary(tested, {"success": {"test T=0": 0.017}, "mean_return": {"test T=0": 0.017}}, at)
    rounds = [known[f"{arm} seed 11 round 1"] for arm in ("flatGRPO", "TurnRDV2")]
    for job in rounds:
        finish(job, at)
        begin(job, f"noise\ncaution: Most groups are dead: {job.method}.\n{job.method}: done\n", at)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "grid")],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    dead, far = sorted(done.stderr.splitlines())
    assert dead.startswith("caution: Most groups are dead: ")
    assert "far below its expert: played greedily, it solves 1.7 % of its tasks" in far


def test_results_that_the_run_will_overwrite_are_no_caution(tmp_path):
    known = jobs(record(tmp_path / "grid"))
    at = time.time() - 1000
    for name in ("study_config", "assets", "expert", "base", "sft"):
        finish(known[name], at)
    running = known["SFTOnly seed 0 evaluation of round 0"]
    begin(running, bar(35, "7/20", "02:10", "step"), time.time())
    stale, fresh = (known[f"{arm} seed 11 round 1"] for arm in ("flatGRPO", "TurnRDV2"))
    for job, kind in ((stale, "Stale"), (fresh, "Fresh")):
        finish(job, at)
        begin(job, f"caution: {kind}: {job.method}.\n", at)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "grid"), *stale.outputs],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stderr.splitlines() == [
        f"{running.name}: running, step 7/20, 2 min left",
        "caution: Fresh: TurnRDV2.",
    ]


def summary(job, content, at):
    (path,) = [Path(path) for path in job.outputs if path.endswith("/summary.json")]
    path.write_text(json.dumps(content), encoding="utf-8")
    os.utime(path, (at, at))
