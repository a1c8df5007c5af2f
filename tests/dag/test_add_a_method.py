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


@pytest.fixture
def extended(project, checkout):
    """A checkout with the README's method in it."""
    text = (project / "README.md").read_text(encoding="utf-8")
    section = text.split("## Add a method\n")[1].split("\n## ")[0]
    blocks = re.findall(r"`((?:hgrpo|configs)/\S+)`:\n\n```\w+\n(.*?)```", section, re.DOTALL)
    assert [name for name, _ in blocks] == [
        "hgrpo/credit/last_turn.py",
        "configs/methods/LastTurn.yaml",
    ]
    for name, body in blocks:
        (checkout.root / name).write_text(body, encoding="utf-8")
    lines = [line for line in blocks[0][1].splitlines() if line.strip()]
    assert len(lines) <= 10
    return checkout


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
