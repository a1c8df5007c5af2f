"""Progress in the terminal of the run: a line when a bar has moved, and a clean end."""

import subprocess
import sys
import time

from watched_study import bar, begin, finish, jobs, record

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
