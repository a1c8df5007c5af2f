"""The benchmark of plans: both of its workflows have the same jobs."""

import json
import subprocess
import sys

from places import PROJECT


def test_the_trivial_workflow_has_the_jobs_of_ours():
    # It refuses workflows of different sizes.
    script = PROJECT / "benchmarks/dag.py"
    done = subprocess.run(
        [sys.executable, script, "--jobs", "100"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["jobs"] > 100 and found["ratio"] > 0
