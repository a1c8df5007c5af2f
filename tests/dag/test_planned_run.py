"""`python -m hgrpo.cli.plan` on real rules: what is cached, what an edit makes run."""

import os
import re
import subprocess
import sys

import pytest


@pytest.fixture
def plan(checkout):
    """Lines that the command prints in the finished study."""

    def run(*arguments: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "hgrpo.cli.plan", *arguments, "study=grid"],
            cwd=checkout.root,
            env=os.environ | {"PYTHONPATH": str(checkout.root)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def counts(lines, label):
    (line,) = (line for line in lines if line.startswith(f"{label} "))
    return [int(number) for number in line.split()[1:4]]


def test_a_plan_counts_what_an_edit_makes_run_and_the_run_begins_with_its_line(checkout, plan):
    lines = plan()
    # Two seeds of two rounds, each evaluated, in both trained arms.
    assert counts(lines, "flatGRPO") == counts(lines, "Progressive") == [8, 8, 0]
    assert counts(lines, "SFTOnly") == [1, 1, 0]
    assert counts(lines, "all") == [25, 25, 0]
    assert "nothing to run" in lines

    checkout.edit("hgrpo/credit/progress.py", "import numpy", "import os\nimport numpy")
    lines = plan()
    assert counts(lines, "flatGRPO") == [8, 8, 0]
    assert counts(lines, "Progressive") == [8, 0, 8]
    # The edited arm's episodes also cause merge, figures and report.
    assert counts(lines, "all") == [25, 14, 11]

    done = checkout.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    line = r"^11 jobs to run, about .* minutes on \d+ cores$"
    assert re.search(line, done.stderr, re.MULTILINE)
    assert re.search(line, "\n".join(lines), re.MULTILINE)
    assert "nothing to run" in plan()
