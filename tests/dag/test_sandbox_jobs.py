"""Which jobs of the sandbox an edit brings: the rules are real, the commands are stubs."""

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from forks import Forks
from project_copy import copy_project

BASE = {"task": "token_reversal", "batch_size": 16, "num_steps": 8}
FIRST = {
    "question": "?",
    "seeds": 2,
    "base": BASE,
    "arms": {"plain": {"method": "DG"}, "fresh": {"method": "FreshDG", "replay_capacity": 4}},
    "metric": {"column": "test_error"},
    "figures": [{"name": "error", "title": "Error", "panels": ["test_error"]}],
}
# The arm `same` is the first study's `plain`.
SECOND = FIRST | {
    "arms": {"same": {"method": "DG"}, "group": {"method": "GRPO", "inner_epochs": 4}}
}
REPORT = {
    *("Sandbox, first: statistics", "Sandbox, first: figures", "Sandbox, second: statistics"),
    *("Sandbox, second: figures", "Sandbox: the page"),
}
RUNS = {"Sandbox, first: plain", "Sandbox, first: fresh", "Sandbox, second: group"}
FIGURES = {name for name in REPORT if name.endswith("figures")}


@dataclass(frozen=True)
class Sandbox:
    root: Path
    forks: Forks

    def snakemake(self, *words: str):
        env = os.environ | {"PYTHONPATH": str(self.root)}
        return self.forks.run("snakemake", *words, cwd=self.root, env=env)

    def planned(self, *words: str) -> set[str]:
        done = self.snakemake("-n", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        messages = set(re.findall(r"^Job \d+: (.*)$", done.stdout + done.stderr, re.MULTILINE))
        return {name for name in messages if name.startswith(("Sandbox, ", "Sandbox: "))}

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} does not contain {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture(scope="module")
def ran(project: Path, forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """Both studies, run to their end."""
    root = tmp_path_factory.mktemp("sandbox")
    copy_project(project, root)
    folder = root / "configs/sandbox"
    shutil.rmtree(folder)
    folder.mkdir()
    for name, study in (("first", FIRST), ("second", SECOND)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    stub = root / "stub/python"
    stub.parent.mkdir()
    body = (project / "tests/dag/sandbox_stub").read_text(encoding="utf-8")
    stub.write_text(f"#!{sys.executable} -IS\n{body}", encoding="utf-8")
    stub.chmod(0o755)
    with (root / "Snakefile").open("a", encoding="utf-8") as handle:
        handle.write('\nshell.prefix("export PATH=" + workflow.basedir + "/stub:$PATH; ")\n')
    sandbox = Sandbox(root, forks)
    assert sandbox.planned("sandbox_all") == RUNS | REPORT
    done = sandbox.snakemake("--cores", "1", "sandbox_all")
    assert done.returncode == 0, done.stdout + done.stderr
    # It takes the most updates.
    assert re.search(r"^Job \d+: (.*)$", done.stdout + done.stderr, re.MULTILINE)[1] == (
        "Sandbox, second: group"
    )
    return sandbox


@pytest.fixture
def sandbox(ran: Sandbox, tmp_path: Path) -> Sandbox:
    root = tmp_path / "checkout"
    shutil.copytree(ran.root, root, symlinks=True)
    return Sandbox(root, ran.forks)


def test_nothing_runs_again_and_an_equal_arm_has_run_once(ran):
    assert ran.planned("sandbox_all") == set()
    assert len(list((ran.root / "results/sandbox/runs").iterdir())) == 3
    # No study of agents was locked, and none has results; the store has only its lock.
    results = {path.name: path for path in (ran.root / "results").iterdir()}
    assert {*results} == {"sandbox", "store"}
    assert [path.name for path in results["store"].iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        (
            "configs/sandbox/first.yaml",
            "replay_capacity: 4",
            "replay_capacity: 5",
            {
                *("Sandbox, first: fresh", "Sandbox, first: statistics"),
                *("Sandbox, first: figures", "Sandbox: the page"),
            },
        ),
        # The question stands on the page alone.
        ("configs/sandbox/first.yaml", "question: '?'", "question: Why?", {"Sandbox: the page"}),
        (
            "configs/sandbox/second.yaml",
            "title: Error",
            "title: Errors",
            {"Sandbox, second: figures", "Sandbox: the page"},
        ),
        (
            "hgrpo/sandbox/studies/figures.py",
            "_PANEL = 1.75",
            "_PANEL = 1.8",
            FIGURES | {"Sandbox: the page"},
        ),
        (
            "hgrpo/formulas/dg_variants.py",
            "fresh * gates * seen.advantages",
            "2 * fresh * gates * seen.advantages",
            {
                *("Sandbox, first: fresh", "Sandbox, first: statistics"),
                *("Sandbox, first: figures", "Sandbox: the page"),
            },
        ),
        (
            "hgrpo/formulas/dg.py",
            "torch.sigmoid(delight(logprobs, advantages) / eta)",
            "torch.sigmoid(delight(logprobs, advantages) / (1 * eta))",
            {"Sandbox, first: plain", "Sandbox, first: fresh", *REPORT},
        ),
        ("hgrpo/sandbox/rl/train.py", "_PATIENCE = 10", "_PATIENCE = 11", RUNS | REPORT),
        ("hgrpo/sandbox/rl/train.py", "# A seed stops", "# Each seed stops", set()),
    ],
)
def test_an_edit_brings_what_depends_on_it(sandbox, name, old, new, expected):
    sandbox.edit(name, old, new)
    assert sandbox.planned("sandbox_all") == expected


def test_an_edit_that_is_undone_brings_nothing(sandbox):
    sandbox.edit("hgrpo/sandbox/studies/figures.py", "_PANEL = 1.75", "_PANEL = 1.8")
    assert sandbox.planned("sandbox_all") == FIGURES | {"Sandbox: the page"}
    sandbox.edit("hgrpo/sandbox/studies/figures.py", "_PANEL = 1.8", "_PANEL = 1.75")
    assert sandbox.planned("sandbox_all") == set()


def test_an_arm_that_was_edited_back_comes_back_to_the_tables(sandbox):
    name, old, new = "configs/sandbox/first.yaml", "replay_capacity: 4", "replay_capacity: 5"
    sandbox.edit(name, old, new)
    done = sandbox.snakemake("--cores", "1", "sandbox_all")
    assert done.returncode == 0, done.stdout + done.stderr
    sandbox.edit(name, new, old)
    # Its run is there.
    assert sandbox.planned("sandbox_all") == {name for name in REPORT if "second" not in name}


def test_targets(sandbox):
    one = {"Sandbox, first", "Sandbox, first: statistics", "Sandbox, first: figures"}
    for folder in ("studies", "sandbox.html"):
        path = sandbox.root / "results/sandbox" / folder
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert sandbox.planned("sandbox_first") == one
    assert sandbox.planned("sandbox_figures") == FIGURES
    assert sandbox.planned("sandbox_ci") == {
        *("Sandbox, first: a tiny pass", "Sandbox, second: a tiny pass"),
        "Sandbox: the page of the tiny pass",
    }


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        (
            "configs/sandbox/first.yaml",
            "method: DG",
            "method: DGG",
            r"first.yaml: plain: method: 'DGG': unknown rule; did you mean 'DG'",
        ),
        ("configs/sandbox/first.yaml", "seeds: 2", "seds: 2", r"first.yaml: seds: unknown key"),
    ],
)
def test_a_mistake_takes_one_line_and_leaves_other_studies_alone(sandbox, name, old, new, expected):
    sandbox.edit(name, old, new)
    done = sandbox.snakemake("-n", "sandbox_first")
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert done.returncode == 1 and len(errors) == 1 and re.search(expected, errors[0]), done.stderr
    assert sandbox.planned("sandbox_second") == set()
