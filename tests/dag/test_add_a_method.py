"""Adding a method as the README says: a new file and a config, nothing else touched."""

import json
import os
import re
import subprocess
import sys

import pytest
from test_invalidation import CONFIG, MERGED, trained

PROBE = """
import json
import numpy as np
from hgrpo.trajectories.trajectory import Trajectory, Turn
from hgrpo.credit.kinds import CreditConfig
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.games.base import Task

def played(rewards):
    turns = [Turn("o", "a", (0, 1), reward, 0.0, True, False) for reward in rewards]
    return Trajectory(Task("t", "t", "h", "x"), 0, turns=turns)

group = Group([played([0.0, 0.0, 1.0]), played([0.0])], ("x",))
rows = make_assigner(CreditConfig(kind="last_turn"), Context()).assign(group)
print(json.dumps([row.tolist() for row in rows]))
"""


def add(root, page, title):
    """Write the files of a section of a page; return them."""
    section = page.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"`((?:hgrpo|configs)/\S+)`:\n\n```\w+\n(.*?)```", section, re.DOTALL)
    for name, body in blocks:
        (root / name).write_text(body, encoding="utf-8")
    return dict(blocks)


@pytest.fixture
def extended(project, checkout):
    """A checkout with the README's method in it."""
    files = add(checkout.root, project / "README.md", "Add a method")
    assert list(files) == ["hgrpo/credit/last_turn.py", "configs/methods/LastTurn.yaml"]
    lines = [line for line in files["hgrpo/credit/last_turn.py"].splitlines() if line.strip()]
    assert len(lines) <= 10
    return checkout


def test_the_new_rule_is_one_file_and_trains_agents_and_the_sandbox(project, checkout):
    files = add(checkout.root, project / "docs/how_to.md", "An update rule")
    assert list(files) == ["hgrpo/formulas/tanh_clip.py", "configs/methods/TanhClip.yaml"]
    planned = checkout.planned("methods=SFTOnly,flatGRPO,Progressive,TanhClip")
    assert planned == CONFIG | trained(methods=["TanhClip"]) | MERGED
    words = ["--method", "TanhClip", "--task", "token_reversal", "--num_steps", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "hgrpo.cli.sandbox", "rl", *words, "--output", "rows.csv"],
        cwd=checkout.root,
        env=os.environ | {"PYTHONPATH": str(checkout.root)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_new_arm_runs_and_the_others_are_kept(extended):
    planned = extended.planned("methods=SFTOnly,flatGRPO,Progressive,LastTurn")
    assert planned == CONFIG | trained(methods=["LastTurn"]) | MERGED


def test_its_credit_is_what_its_docstring_says(extended):
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=extended.root,
        env=os.environ | {"PYTHONPATH": str(extended.root)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[0.0, 0.0, 1.0], [0.0]]
