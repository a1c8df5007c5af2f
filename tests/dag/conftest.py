"""A finished study in a copy of the project: real rules, stub commands."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from forks import Forks
from places import PROJECT
from project_copy import copy_project

STUDY = {
    "name": "grid",
    # Text in braces is no wildcard.
    "description": "{two} arms and {method}",
    "env": "alfworld-laptop",
    "model": "tiny",
    "methods": ["SFTOnly", "flatGRPO", "Progressive"],
    "seeds": [11, 23],
    "rounds": 2,
}

# In rules/common.smk, the folder of the Python that runs jobs.
PYTHON = "BIN = shlex.quote(os.path.dirname(sys.executable))"
STUB = 'BIN = workflow.basedir + "/stub"'


@dataclass(frozen=True)
class Checkout:
    """A copy of the project with the study `grid`."""

    root: Path
    forks: Forks

    def copy(self, root: Path) -> "Checkout":
        """A copy with all results, which are as up to date there as they are here."""
        shutil.copytree(self.root, root, symlinks=True)
        return Checkout(root, self.forks)

    def snakemake(self, *arguments: str, alone: bool = False) -> subprocess.CompletedProcess:
        """Run snakemake here, on the study `grid`; another may be named; `alone`, not as a fork."""
        if not any(argument.startswith("study=") for argument in arguments):
            config = ["--config", "study=grid"]
        else:
            config = ["--config"]
        overrides = [argument for argument in arguments if re.match(r"\w+=", argument)]
        options = [argument for argument in arguments if argument not in overrides]
        env = os.environ | {"PYTHONPATH": str(self.root)}
        words = ["snakemake", *options, *config, *overrides]
        if alone:
            command = [sys.executable, "-m", *words]
            return subprocess.run(
                command, cwd=self.root, env=env, capture_output=True, encoding="utf-8"
            )
        return self.forks.run(*words, cwd=self.root, env=env)

    def planned(self, *arguments: str) -> set[str]:
        """Messages of the jobs that a run would execute, without the target's own."""
        done = self.snakemake("-n", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        messages = re.findall(r"^Job \d+: (.*)$", done.stdout + done.stderr, re.MULTILINE)
        return {*messages} - {"The whole study"}

    def links(self, name: str = "grid") -> dict[str, str]:
        """Path below results/<study> -> the key of the job that it leads to."""
        root = self.root / "results" / name
        targets = {path: os.readlink(path) for path in root.rglob("*") if path.is_symlink()}
        return {
            str(path.relative_to(root)): target.partition("store/")[2].partition("/")[0]
            for path, target in targets.items()
        }

    def add_environment(self, *extras: str) -> None:
        """Add the Makefile and a .venv, as after `make`; `extras` count as installed."""
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "constraints-gpu.txt"):
            shutil.copy2(PROJECT / name, self.root)
        programs = self.root / ".venv/bin"
        programs.mkdir(parents=True)
        for program in Path(sys.prefix, "bin").iterdir():
            if not program.name.startswith(("python", "pip")):
                (programs / program.name).symlink_to(program)
        # An install here would change the environment of whoever runs the tests.
        (programs / "python").write_text(
            '#!/bin/sh\n[ "$1 $2" = "-m pip" ] && { echo "no installs in tests" >&2; exit 1; }\n'
            f'exec {sys.executable} "$@"\n',
            encoding="utf-8",
        )
        (programs / "python").chmod(0o755)
        for extra in ("", *extras):
            # The stamp of a finished install.
            (self.root / f".venv/.{extra}judge+train+workflow").touch()

    def take_real_commands(self) -> None:
        """Let jobs run the project's own commands, and not the stub."""
        self.edit("rules/common.smk", STUB, PYTHON)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace `old`, which must be there, in a file."""
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} does not contain {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """For runs of snakemake."""
    made = Forks("snakemake.cli")
    yield made
    made.close()


@pytest.fixture(scope="session")
def finished(project: Path, forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The study `grid`, run to its end; tests must not write to it."""
    root = tmp_path_factory.mktemp("finished")
    copy_project(project, root)
    (root / "configs/studies/grid.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    stub = root / "stub/python"
    stub.parent.mkdir()
    body = (project / "tests/dag/stub_python").read_text(encoding="utf-8")
    stub.write_text(f"#!{sys.executable} -IS\n{body}", encoding="utf-8")
    stub.chmod(0o755)
    checkout = Checkout(root, forks)
    # Each copy of the checkout has a stub of its own, which imports nothing.
    checkout.edit("rules/common.smk", PYTHON, STUB)
    with (root / "Snakefile").open("a", encoding="utf-8") as handle:
        handle.write("\nfrom hgrpo.workflow import warm\nwarm.start = lambda: None\n")
    done = checkout.snakemake(alone=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout


@pytest.fixture
def checkout(finished: Checkout, tmp_path: Path) -> Checkout:
    """The finished study, free to be edited."""
    return finished.copy(tmp_path / "checkout")
