"""A checkout that may not be written: results go where `--directory` points."""

import os
import re
import subprocess
import sys

import pytest

# A mount of its own stops root too, and nobody else sees it.
PRIVATE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
READ_ONLY = 'mount --bind -o ro "$0" "$0" && cd "$0" && exec "$@"'


@pytest.fixture(scope="module")
def run(project):
    """A command in the project, which is mounted read-only."""
    shell = [*PRIVATE, "bash", "-c", READ_ONLY, str(project)]
    if (done := subprocess.run([*shell, "true"], capture_output=True, encoding="utf-8")).returncode:
        pytest.skip(f"no private mounts here: {done.stderr.strip()}")

    def run(*words):
        return subprocess.run(
            [*shell, sys.executable, "-m", *words], capture_output=True, encoding="utf-8"
        )

    return run


def test_a_run_ends_with_the_path_that_cannot_be_written(run, project):
    done = run("snakemake", "--config", "study=smoke")
    assert done.returncode != 0
    last = done.stderr.rstrip().splitlines()[-1]
    assert re.search(rf"Read-only file system: '({re.escape(str(project))}/)?\.snakemake", last), (
        last
    )


def test_the_plan_writes_nothing(run):
    done = run("hgrpo.cli.plan", "study=smoke")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^(\d+ jobs to run, |nothing to run)", done.stdout, re.MULTILINE)


def test_a_directory_elsewhere_takes_the_results(run, tmp_path):
    words = ["results/smoke/assets/panels.json", "--cores", "1", "--config", "study=smoke"]
    done = run("snakemake", "--directory", str(tmp_path), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / words[0]).is_file()
