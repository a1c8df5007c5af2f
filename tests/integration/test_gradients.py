"""A study that measures gradients, from its games to the page."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest
import yaml
from project_copy import copy_project

pytestmark = pytest.mark.slow

GROUPS = 12
STUDY = {
    "name": "measured",
    "env": "measured",
    "model": "tiny",
    "methods": ["SFTOnly", "PPO", "FilterTopP"],
    "reference": "PPO",
    "seeds": [11],
    "rounds": 1,
    "training": {
        "steps_per_round": 2,
        "tasks_per_step": 4,
        "rollouts_per_task": 4,
        "critic": {"warmup_steps": 2},
    },
    "sft": {"epochs": 1, "batch_trajectories": 16, "validation_share": 0.1},
    "gradients": {"groups": GROUPS, "rollouts": 4, "buckets": 3, "after_rounds": [0, 1]},
    "evaluation": {"test_games": 16, "validation_games": 8, "bootstrap": 200},
}


def snakemake(root, *words):
    command = [sys.executable, "-m", "snakemake", "--config", "study=measured", *words]
    done = subprocess.run(
        command,
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def root(project, tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    copy_project(project, root)
    configs = root / "configs"
    env = yaml.safe_load((configs / "envs/sokoban-smoke.yaml").read_text())
    env["panels"]["analysis"] = GROUPS
    (configs / "envs/measured.yaml").write_text(yaml.safe_dump(env))
    (configs / "studies/measured.yaml").write_text(yaml.safe_dump(STUDY))
    snakemake(root, "--cores", "2", "--", "gradients")
    return root


def folder(root, method, number):
    return root / f"results/measured/gradients/{method}/seed_11/round_{number}"


def test_every_policy_is_measured_on_the_same_tasks(root):
    tables = [
        pd.read_csv(folder(root, method, number) / "groups.csv")
        for method in ("PPO", "FilterTopP")
        for number in (0, 1)
    ]
    panel = json.loads((root / "results/measured/assets/panels.json").read_text())["analysis"]
    for table in tables:
        assert table["task"].tolist() == tables[0]["task"].tolist()
        assert set(table["task"]) == {task["task_id"] for task in panel}
        assert (table["trajectories"] == 4).all()
    # A filter without a critic leaves groups out; a critic without a filter uses all.
    assert (tables[0]["kept"] == 4).all() and not (tables[2]["kept"] == 4).all()


def test_buckets_hold_every_group_once(root):
    table = pd.read_csv(folder(root, "PPO", 1) / "buckets.csv")
    for _, part in table.groupby(["pass", "component"]):
        sizes = part.set_index("bucket")["groups"]
        assert sizes.drop("all").tolist() == [4, 4, 4] and sizes["all"] == GROUPS
        assert (part["corrected"] <= part["norm"]).all()
    # The SFT policy is its own reference: neither KL nor its gradient.
    first = pd.read_csv(folder(root, "PPO", 0) / "buckets.csv")
    assert (first[first["component"] == "kl"]["norm"] < 1e-4).all()


def test_a_new_critic_is_warmed_up_and_another_goes_on(root):
    summaries = [
        json.loads((folder(root, "PPO", number) / "summary.json").read_text()) for number in (0, 1)
    ]
    assert [each["warmed_up_steps"] for each in summaries] == [2, 0]
    assert [each["steps"] for each in summaries] == [0, 2]


def test_the_page_stands_alone_and_nothing_is_measured_twice(root):
    page = (root / "results/measured/gradients_page/index.html").read_text()
    assert "PPO: norms of the gradients" in page and "src=" not in page
    assert "Nothing to be done" in snakemake(root, "-n", "--", "gradients")
