"""How several processes are started, and what is said if one of them dies."""

import os
import subprocess
import sys

from places import PROJECT

DIES = """
import os, signal, sys, time
from hgrpo.learning.ranks import become_ranks
become_ranks(2)
if os.environ["RANK"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
"""


def test_a_process_that_is_killed_is_named(tmp_path):
    (tmp_path / "dies.py").write_text(DIES, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "dies"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{PROJECT}"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: process 1 ended by signal 9 (SIGKILL)"
