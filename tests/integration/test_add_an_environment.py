"""Adding an environment as docs/add_an_environment.md says: one file and two configs, no more."""

import json
import os
import re
import subprocess
import sys

import pandas as pd
import pytest
from project_copy import copy_project

FILES = [
    "hgrpo/games/doors/__init__.py",
    "configs/envs/doors.yaml",
    "configs/studies/doors.yaml",
]
PLAY = """
import json, pickle
from pathlib import Path
from hgrpo.games.base import Task
from hgrpo.games.kinds import load
from hgrpo.stages.sections import environment_settings
settings = environment_settings({"name": "doors", "turn_cap": 5}, "test")
make = load("doors").factory(settings, Path("."))
def episode(*actions):
    game = make()
    opening = game.reset(Task("t", "red green blue green", "h", "doors"))
    steps = [game.step(action) for action in actions]
    return [opening.text, *([s.observation.text, s.env_reward, s.progress, s.done] for s in steps)]
print(json.dumps([
    episode("take key", "unlock green", "leave by green"),
    episode("unlock green", "take key", "unlock red", "leave by red"),
]))
"""


@pytest.fixture(scope="module")
def checkout(project, tmp_path_factory):
    """A copy of the project with the page's files in it."""
    root = tmp_path_factory.mktemp("doors")
    copy_project(project, root)
    page = (project / "docs/add_an_environment.md").read_text(encoding="utf-8")
    blocks = re.findall(r"`((?:hgrpo|configs)/\S+)`:\n\n```\w+\n(.*?)```", page, re.DOTALL)
    assert [name for name, _ in blocks] == FILES
    assert blocks[0][1].count("\n") < 100
    for name, body in blocks:
        path = root / name
        path.parent.mkdir(exist_ok=True)
        assert not path.exists()
        path.write_text(body, encoding="utf-8")
    return root


def run(checkout, *command):
    done = subprocess.run(
        [sys.executable, *command],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_too_small_a_panel_ends_the_assets_stage(checkout, tmp_path):
    # Two doors of six colours, in order, and one of them to leave by: 6 * 5 * 2 = 60 halls.
    sizes = {"train": 50, "validation": 6, "test": 10}
    config = json.dumps({"name": "doors", "turn_cap": 5, "doors": 2, "panels": sizes})
    done = subprocess.run(
        [sys.executable, "-m", "hgrpo.cli.stage", "assets", "--config", config, "--seed", "0"]
        + ["--out", str(tmp_path / "assets")],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2 and done.stderr.splitlines()[-1] == (
        "error: env.panels.test: too few tasks (10 required, 4 available); panel sizes: train 50, "
        "validation 6, test 4"
    )


def test_an_expert_that_solves_nothing_is_named_at_once(checkout, tmp_path):
    sizes = {"train": 9, "validation": 2, "test": 2}
    config = {"name": "doors", "turn_cap": 2, "panels": sizes, "expert": {"trajectories": 9}}
    job = ["--config", json.dumps(config), "--seed", "0"]
    assets = ["--assets", str(tmp_path / "assets")]
    run(checkout, "-m", "hgrpo.cli.stage", "assets", *job, "--out", assets[1])
    out = run(
        checkout,
        "-m",
        "hgrpo.cli.stage",
        "expert",
        *job,
        *assets,
        "--out",
        str(tmp_path / "expert"),
    )
    # The shortest way out has three turns: the key, the lock, the door.
    assert out.splitlines()[-1].startswith("caution: The expert, which SFT imitates, solves 0.0 %")


@pytest.fixture(scope="module")
def results(checkout):
    """Results of the page's study."""
    run(checkout, "-m", "snakemake", "--cores", "2", "--quiet", "all", "--config", "study=doors")
    return checkout / "results/doors"


def test_the_game_plays_as_the_page_says(checkout):
    won, lost = json.loads(run(checkout, "-c", PLAY))
    third = pytest.approx(1 / 3)
    assert won == [
        "A key, and doors: red green blue. Your task is to: leave by green.",
        ["You take key.", 0.0, third, False],
        ["You unlock green.", 0.0, third, False],
        ["You leave by green.", 1.0, third, True],
    ]
    assert lost[1:] == [
        ["Nothing happens.", 0.0, 0.0, False],
        ["You take key.", 0.0, third, False],
        ["You unlock red.", 0.0, 0.0, False],
        ["You leave by red.", 0.0, 0.0, True],
    ]


@pytest.mark.slow
def test_the_study_trains_and_evaluates_it(results):
    panels = json.loads((results / "assets/panels.json").read_bytes())
    assert {split: len(tasks) for split, tasks in panels.items()} == {
        "train": 200,
        "validation": 20,
        "test": 60,
    }
    summary = json.loads((results / "expert/summary.json").read_bytes())
    assert summary["trajectories"] == 600
    for method in ("flatGRPO", "GiGPO"):
        log = json.loads((results / f"rl/{method}/seed_11/round_1/train_log.json").read_bytes())
        assert len(log["rows"]) == 4
        table = pd.read_parquet(results / f"eval/{method}/seed_11/round_1/episodes.parquet")
        tested = table[table["panel"] == "test"]
        assert set(tested["task_id"]) == {task["task_id"] for task in panels["test"]}
        # The tiny model has learnt to play.
        assert tested["success"].mean() >= 0.9


@pytest.mark.slow
def test_the_report_shows_it(results):
    page = (results / "report/report.html").read_text(encoding="utf-8")
    assert "A game of our own" in page
    assert "flat GRPO" in page and "GiGPO" in page
    assert "doors" in page


LEARNT = '''
"""Credit of a position: the mean progress of the turns at it, learnt between the rounds."""

import json

import numpy as np
from safetensors.numpy import load_file, save_file

from hgrpo.credit.base import CreditAssigner
from hgrpo.credit.settings import CreditSettings
from hgrpo.trajectories.store import read_turns


class Settings(CreditSettings):
    fits = True


class PositionCredit(CreditAssigner):
    def __init__(self, means):
        self.means = means

    def assign(self, group):
        return [np.resize(self.means, len(t.turns)) for t in group.trajectories]


def make(settings, context):
    if context.fitted is None:
        return PositionCredit(np.zeros(1))
    return PositionCredit(load_file(context.fitted / "model.safetensors")["means"])


def fit(settings, rounds, previous, seed, round, out, show):
    tables = [read_turns(folder / "turns.parquet", ["turn", "progress"]) for folder in rounds]
    turns = np.concatenate([table["turn"].to_numpy() for table in tables])
    progress = np.concatenate([table["progress"].to_numpy() for table in tables])
    means = np.array([progress[turns == t].mean() for t in range(turns.max() + 1)])
    save_file({"means": means}, out / "model.safetensors")
    (out / "model.json").write_text(json.dumps({"rounds": len(rounds)}), encoding="utf-8")
    row = {"epoch": 0, "validation_loss": 0.0}
    log = {"rows": [row], "elapsed_s": 0.0}
    (out / "train_log.json").write_text(json.dumps(log), encoding="utf-8")
    return f"{len(means)} positions"
'''
METHOD = """
name: Position
credit: {kind: position}
alpha: 0.5
turn_norm: group
"""


@pytest.mark.slow
def test_a_method_with_a_fit_between_rounds_is_one_file_and_one_config(checkout, results):
    (checkout / "hgrpo/credit/position.py").write_text(LEARNT, encoding="utf-8")
    (checkout / "configs/methods/Position.yaml").write_text(METHOD, encoding="utf-8")
    chosen = ("study=doors", "methods=SFTOnly,flatGRPO,Position", "rounds=2")
    run(checkout, "-m", "snakemake", "--cores", "2", "--quiet", "all", "--config", *chosen)
    rounds = [results / f"rl/Position/seed_11/round_{number}" for number in (1, 2)]
    first, second = (pd.read_parquet(folder / "turns.parquet") for folder in rounds)
    assert (first["credit"] == 0).all()
    learnt = first.groupby("turn")["progress"].mean()
    # pandas and numpy add in different orders.
    expected = learnt[second["turn"] % len(learnt)].tolist()
    assert second["credit"].tolist() == pytest.approx(expected, rel=1e-12)
    assert "Position" in (results / "report/report.html").read_text(encoding="utf-8")


def test_the_library_and_gymnasiums_checker_accept_it(project, checkout):
    page = (project / "docs/add_an_environment.md").read_text(encoding="utf-8")
    code = page.split("[as a library]")[1].split("```python\n")[1].split("```")[0]
    run(checkout, "-c", code)
