"""A checkout that may not be written: results go where `--directory` points."""

import os
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


@pytest.mark.parametrize(
    "command", [("snakemake", "-n", "--config"), ("hgrpo.cli.plan",)], ids=["snakemake", "plan"]
)
def test_one_line_says_that_it_cannot_be_written(run, project, command):
    done = run(*command, "study=smoke")
    assert done.returncode != 0
    *others, last = done.stderr.splitlines()
    assert f"error: {project}: cannot be written; give --directory" in last
    assert all(line.startswith("Using workflow specific profile") for line in others)


def test_a_directory_elsewhere_takes_the_results(run, tmp_path):
    words = ["results/smoke/assets/panels.json", "--cores", "1", "--config", "study=smoke"]
    done = run("snakemake", "--directory", str(tmp_path), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / words[0]).is_file()
