"""Benchmarks that the trainer's code can break: they still run to their end."""

import json
import subprocess
import sys

import pytest
from places import PROJECT

pytestmark = pytest.mark.slow


def test_the_benchmark_of_objectives_runs(tmp_path):
    script = PROJECT / "benchmarks/objectives.py"
    done = subprocess.run(
        [sys.executable, script, tmp_path], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout.splitlines()[-1])
    assert set(row["ratios"]) == {"entropy", "ppo", "analysis"}
    assert all(ratio > 0 for ratios in row["ratios"].values() for ratio in ratios)
