"""`python -m hgrpo.cli.probe`, as `make probe` calls it, where something is missing."""

import importlib.util
import os
import subprocess
import sys

import pytest
from project_copy import copy_project, paths_below

VARIABLES = ("ALFWORLD_DATA", "WEBSHOP_DATA", "HGRPO_MODELS", "OPENAI_API_KEY")
MODEL = "$HGRPO_MODELS/Qwen2.5-1.5B-Instruct"


@pytest.fixture(scope="module")
def root(project, tmp_path_factory):
    root = tmp_path_factory.mktemp("probe")
    copy_project(project, root)
    return root


def probe(root, *arguments) -> subprocess.CompletedProcess:
    """The command on a machine without a GPU, data, models or keys."""
    known = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return subprocess.run(
        [sys.executable, "-m", "hgrpo.cli.probe", *arguments],
        cwd=root,
        env=known
        | {"PYTHONPATH": str(root), "CUDA_VISIBLE_DEVICES": ""}
        | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize(
    ("study", "data"),
    [
        (
            "webshop_5x40",
            ["$WEBSHOP_DATA/items_ins_v2_1000.json", "$WEBSHOP_DATA/items_shuffle_1000.json"],
        ),
    ],
)
def test_a_machine_that_lacks_much_is_told_all_of_it_and_nothing_is_written(root, study, data):
    before = paths_below(root)
    done = probe(root, f"study={study}")
    assert done.returncode == 2
    marked = [line for line in done.stdout.splitlines() if line.startswith("- ")]
    vllm = [] if importlib.util.find_spec("vllm") else ["engine vllm"]
    needed = [*vllm, "GPU (1 for a job)", "OPENAI_API_KEY", *data, MODEL]
    assert [line for name in needed for line in marked if line.startswith(f"- {name} ")] == [
        line for line in marked if line.split()[1].startswith(("engine", "GPU", "OPENAI", "$"))
    ]
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"error: study {study}: missing on this machine: ")
    assert all(name in done.stderr for name in needed)
    assert any(line.startswith("+ torch ") for line in done.stdout.splitlines())
    assert "+ disk " in done.stdout and "one step" not in done.stdout
    assert paths_below(root) == before


def test_a_mistake_is_one_line(root):
    before = paths_below(root)
    done = probe(root, "--profile", "profiles/kubernetes")
    assert done.returncode == 2 and paths_below(root) == before
    assert len(done.stderr.splitlines()) == 1
    assert "profiles/kubernetes: the test run would write to" in done.stderr
