"""`python -m hgrpo.cli.probe`, as `make probe` calls it, where something is missing."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from project_copy import copy_project, paths_below

from hgrpo.cli import probe as command

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
        ("alfworld_5x40", ["$ALFWORLD_DATA/json_2.1.1"]),
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
    assert done.stderr.startswith(f"error: study {study}: this machine lacks ")
    assert all(name in done.stderr for name in needed)
    assert any(line.startswith("+ torch ") for line in done.stdout.splitlines())
    assert "+ disk " in done.stdout and "one step" not in done.stdout
    assert paths_below(root) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["study=nope"], "configs/studies/nope.yaml: no such file; known: "),
        (["study=../studies/smoke"], "study: not a study's name: '../studies/smoke'"),
        (["--profile", "profiles/nope"], "profiles/nope: no such profile"),
        (["--profile", "profiles/kubernetes"], "profiles/kubernetes: one step would write among"),
        (["study=smoke", "training.steps=1"], "training.steps: unknown key"),
        (["smoke"], "KEY=VALUE was expected, not 'smoke'"),
    ],
)
def test_a_mistake_is_one_line(root, arguments, said):
    before = paths_below(root)
    done = probe(root, *arguments)
    assert done.returncode == 2 and paths_below(root) == before
    assert len(done.stderr.splitlines()) == 1 and said in done.stderr


def test_a_step_that_ran_leaves_nothing_unless_another_probe_failed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = subprocess.CompletedProcess([], 0, stdout="", stderr="")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    mine, failed = command.FOLDER / "mine", command.FOLDER / "failed"
    command._run_one_step([], Path("profiles/laptop"), mine)
    assert list(Path("results").iterdir()) == []
    failed.mkdir(parents=True)
    command._run_one_step([], Path("profiles/laptop"), mine)
    assert failed.is_dir() and not mine.exists()
