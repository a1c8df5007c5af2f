"""Every command in the code blocks of docs/team.md and of the README runs, with stub stages."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import declare
from places import PROJECT

from hgrpo.study.overrides import read_assignments
from hgrpo.study.study import load_study
from hgrpo.workflow.probe import one_step

pytestmark = pytest.mark.slow

BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SIX = "SFTOnly,flatGRPO,LLMJudge,TurnRDV1,TurnRDV2,Progressive"
TEAM = [
    *({"methods": arms, "seeds": "11,23"} for arms in (SIX, "SFTOnly,flatGRPO", "LLMJudge")),
    *({"methods": "TurnRDV1,TurnRDV2", "seeds": seeds} for seeds in ("11", "11,23")),
    *({"methods": "Progressive", "seeds": "11,23", "rounds": rounds} for rounds in (2, 5)),
]
# These install packages, or test the project itself for minutes.
LEFT_OUT = ("make test", "make test-slow")
EXTRAS = ("", "-gpu")


def blocks(page: str) -> list[list[str]]:
    """The lines of each code block without a language; comments at their ends are cut off."""
    found = []
    for text in BLOCK.findall((PROJECT / page).read_text()):
        lines = re.sub(r"\\\\\n\s*", "", text).splitlines()
        found.append([re.sub(r"\s{2,}#.*", "", line) for line in lines])
    return found


def checkout(finished, root: Path) -> Path:
    """A checkout as after `make`: with an environment, and without results."""
    shutil.copytree(finished.root, root, symlinks=True)
    shutil.rmtree(root / "results")
    shutil.rmtree(root / ".snakemake", ignore_errors=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "constraints-gpu.txt"):
        shutil.copy2(PROJECT / name, root)
    (root / ".venv").mkdir()
    (root / ".venv/bin").symlink_to(Path(sys.executable).parent)
    for extra in EXTRAS:
        # The stamp of a finished install; it holds the seconds that this took.
        (root / f".venv/.train-workflow-judge{extra}").write_text("1")
    return root


def run(line: str, root: Path) -> str:
    env = os.environ | {
        "PYTHONPATH": str(root),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", line], cwd=root, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr


def test_the_teams_week(finished, tmp_path):
    people = {name: checkout(finished, tmp_path / name) for name in ("Ann", "Ben", "Cleo", "Dan")}
    probed = "alfworld_5x40_cpu"
    step = read_assignments(one_step(load_study(PROJECT / f"configs/studies/{probed}.yaml")))
    del step["study"]
    runs = [*(("bakeoff", given) for given in TEAM), (probed, step)]
    for root in people.values():
        declare(root, *runs)
    said, ran = {}, 0
    for lines in blocks("docs/team.md"):
        who = lines[0].removeprefix("# ")
        # What one exports, the others have.
        for root in people.values():
            for archive in tmp_path.glob("*/*.tar"):
                if archive.parent != root:
                    shutil.copy2(archive, root)
        for line in lines[1:]:
            said[line] = run(line, people.get(who, people["Ann"]))
            ran += 1
    assert ran >= 20
    friday = said[
        next(
            line
            for line in said
            if line.startswith("make plan") and "Cleo" not in line and "Progressive" in line
        )
    ]
    assert re.search(r"^rl_round +50 +50 ", friday, re.MULTILINE), friday
    # Dan's second run played three rounds more, for two seeds.
    assert len(list((people["Dan"] / "results/bakeoff/rl/Progressive").glob("*/*"))) == 10
    assert (people["Ann"] / "results/bakeoff/report/report.html").is_file()
    assert (people["Ann"] / "results/bakeoff/paper/results.tex").is_file()


def test_the_readme(finished, tmp_path):
    root = checkout(finished, tmp_path / "readme")
    declare(
        root,
        ("bakeoff", {}),
        ("bakeoff", {"seeds": "11,23,31"}),
        ("bakeoff", {"rounds": 7}),
        ("smoke", {}),
        ("alpha_sweep", {"seeds": "11,23"}),
    )
    run("make bakeoff STUDY=smoke", root)
    ran = []
    for lines in blocks("README.md"):
        for line in lines:
            if line.strip() and not line.startswith(LEFT_OUT):
                run(line, root)
                ran.append(line)
    assert len(ran) >= 10, ran
