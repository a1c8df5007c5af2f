"""`python -m hgrpo.cli.plan` on real rules: what is cached, what an edit makes run, how it went."""

import os
import re
import subprocess
import sys

import pytest

from hgrpo.cli.plan import main
from hgrpo.errors import UserError


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


def test_a_plan_names_what_an_edit_makes_run_and_is_held_against_it(checkout, plan):
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
    start = r"11 jobs to run, about .* minutes on \d+ cores"
    assert re.search(rf"^{start}$", done.stderr, re.MULTILINE)
    assert re.search(rf"^plan:    {start}; it took \S+ minutes$", done.stderr, re.MULTILINE)


LOST = "results/grid/rl/flatGRPO/seed_11/round_1/adapter/model.safetensors"


@pytest.mark.slow
def test_a_lost_file_of_a_finished_study_comes_back_by_its_path(checkout):
    path = checkout.root / LOST
    whole = path.read_bytes()
    path.unlink()
    # Snakemake does not miss the file, because the report is newer than what was made from it.
    assert checkout.planned() == set()

    done = checkout.snakemake(LOST, "--workflow-profile", "profiles/laptop")
    assert done.returncode == 0, done.stdout + done.stderr
    assert path.read_bytes() == whole
    # The file is the same as before, so no later job runs. If it differed, all later jobs would.
    assert checkout.planned() == set()
    path.write_text("another policy", encoding="utf-8")
    assert "flatGRPO, seed 11: round 2" in checkout.planned()


def test_lost_files_that_later_jobs_rest_on_need_not_cost_those_jobs(checkout):
    for path in (checkout.root / "results/grid/assets").iterdir():
        path.unlink()
    assert "flatGRPO, seed 11: round 1" in checkout.planned()
    done = checkout.snakemake("assets")
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkout.planned() <= {"Resolved configuration of the study", "Tables and the report"}


def test_a_mistake_on_the_command_line_is_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["plan", "--cores", "0"])
    with pytest.raises(UserError, match="--cores: at least 1 was expected, not 0"):
        main()
