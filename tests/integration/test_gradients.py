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
        "critic": {"warmup_steps": 1},
    },
    "sft": {"epochs": 1, "batch_trajectories": 16, "validation_share": 0.1},
    "gradients": {"groups": GROUPS, "rollouts": 4, "buckets": 3, "after_rounds": [0, 1]},
    "evaluation": {"test_games": 16, "validation_games": 8},
}


def snakemake(root, *words, study="measured"):
    command = [sys.executable, "-m", "snakemake", "--config", f"study={study}", *words]
    done = subprocess.run(
        command,
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def root(project, tmp_path_factory):
    root = tmp_path_factory.mktemp("project")
    copy_project(project, root)
    configs = root / "configs"
    env = yaml.safe_load((configs / "envs/sokoban-smoke.yaml").read_bytes())
    env["panels"]["analysis"] = GROUPS
    (configs / "envs/measured.yaml").write_text(yaml.safe_dump(env), encoding="utf-8")
    (configs / "studies/measured.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
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
    panel = json.loads((root / "results/measured/assets/panels.json").read_bytes())["analysis"]
    for table in tables:
        assert table["task"].tolist() == tables[0]["task"].tolist()
        assert set(table["task"]) == {task["task_id"] for task in panel}
        assert (table["trajectories"] == 4).all()
    # A filter without a critic leaves groups out; a critic without a filter uses all.
    assert (tables[0]["kept"] == 4).all() and not (tables[2]["kept"] == 4).all()


def test_buckets_hold_every_group_once(root):
    table = pd.read_csv(folder(root, "PPO", 1) / "buckets.csv")
    for _, part in table.groupby(["pass", "component"]):
        rows = part.set_index("bucket")
        assert rows["groups"].drop("all").tolist() == [4, 4, 4] and rows["groups"]["all"] == GROUPS
        for count in ("trajectories", "tokens"):
            assert rows[count].drop("all").sum() == rows.loc["all", count] > 0
    # KL and entropy together are shorter than the sum of both: they are not parallel.
    trained = pd.read_csv(folder(root, "FilterTopP", 1) / "buckets.csv")
    norms = trained.pivot(index=["pass", "bucket"], columns="component", values="norm")
    assert (norms["kl"] > 0).all()
    assert (norms["regularisers"] < 0.001 * (norms["kl"] + norms["entropy"])).all()
    # The SFT policy is its own reference: neither KL nor its gradient.
    first = pd.read_csv(folder(root, "PPO", 0) / "buckets.csv")
    assert (first[first["component"] == "kl"]["norm"] < 1e-4).all()


def test_a_single_command_leaves_its_results_alone(root, tmp_path):
    done = measure(root, tmp_path, "sft/adapter", 11, 0)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "out"}


def measure(root, tmp_path, policy, seed, number):
    """`gradients_round` of the arm PPO, from a policy below the study's results."""
    results = root / "results/measured"
    settings = ("configs/studies/measured.yaml", "--stage", "gradients_round", "--method", "PPO")
    config = run(root, "hgrpo.cli.config", *settings).stdout
    paths = {
        "assets": results / "assets",
        "base": results / "base",
        "sft": results / "sft/adapter",
        "policy": results / policy,
        "out": tmp_path / "out",
    }
    options = [word for name, path in paths.items() for word in (f"--{name}", path)]
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    numbers = ("--seed", seed, "--round", number)
    config = ("--config", tmp_path / "config.json")
    return run(root, "hgrpo.cli.stage", "gradients_round", *config, *numbers, *options)


def run(root, module, *words):
    command = [sys.executable, "-m", module, *map(str, words)]
    env = os.environ | {"PYTHONPATH": str(root)}
    return subprocess.run(command, cwd=root, env=env, capture_output=True, encoding="utf-8")


def test_a_new_critic_is_warmed_up_and_another_goes_on(root):
    summaries = [
        json.loads((folder(root, "PPO", number) / "summary.json").read_bytes()) for number in (0, 1)
    ]
    assert [each["warmed_up_steps"] for each in summaries] == [1, 0]
    assert [each["steps"] for each in summaries] == [0, 2]
    assert not {"after_rounds", "with_validation"} & set(summaries[0]["gradients"])


def test_the_page_stands_alone_and_nothing_is_measured_twice(root):
    page = (root / "results/measured/gradients_page/index.html").read_text(encoding="utf-8")
    assert "PPO: gradient norms" in page and "src=" not in page
    assert page.count("<details>") == 4 and "PPO after 2 steps: norms by bucket" in page
    stems = {path.stem for path in (root / "results/measured/gradients_page/PPO_step_2").iterdir()}
    assert stems == {"summary", "plots", "loss_plots", "reward_std", "normed_grads"}
    assert "Nothing to be done" in snakemake(root, "-n", "--", "gradients")


def test_policies_are_the_same_without_the_analysis(root, project, tmp_path):
    copy_project(project, tmp_path)
    for name in ("envs/measured", "studies/measured"):
        text = (root / f"configs/{name}.yaml").read_text(encoding="utf-8")
        (tmp_path / f"configs/{name}.yaml").write_text(text, encoding="utf-8")
    study = {key: value for key, value in STUDY.items() if key != "gradients"}
    (tmp_path / "configs/studies/measured.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    trained = [
        f"results/measured/rl/{method}/seed_11/round_1/{name}"
        for method in ("PPO", "FilterTopP")
        for name in ("adapter/model.safetensors", "adapter/trainer_state.pt", "critic.safetensors")
    ]
    snakemake(tmp_path, "--cores", "2", "--", *trained)
    for path in trained:
        assert (tmp_path / path).read_bytes() == (root / path).read_bytes(), path


@pytest.mark.parametrize(("env", "trajectories"), [("alfworld-smoke", 500), ("chores-eight", 500)])
def test_other_environments_are_measured_too(project, tmp_path, env, trajectories):
    copy_project(project, tmp_path)
    configs = tmp_path / "configs"
    settings = yaml.safe_load((configs / f"envs/{env}.yaml").read_bytes())
    settings["panels"] = {"train": 20, "validation": 8, "test": 8, "analysis": GROUPS}
    settings["expert"]["trajectories"] = trajectories
    (configs / "envs/other.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    study = STUDY | {"name": "other", "env": "other", "reference": "flatGRPO"}
    study |= {"methods": ["SFTOnly", "flatGRPO"], "sft": STUDY["sft"] | {"epochs": 0.3}}
    study |= {"gradients": STUDY["gradients"] | {"after_rounds": [0]}}
    study |= {"evaluation": STUDY["evaluation"] | {"test_games": 8}}
    (configs / "studies/other.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    snakemake(tmp_path, "--cores", "2", "--", "gradients", study="other")
    page = tmp_path / "results/other/gradients_page/index.html"
    assert "smallest deviation of returns: in 1 of 1 policy " in page.read_text(encoding="utf-8")
    groups = tmp_path / "results/other/gradients/flatGRPO/seed_11/round_0/groups.csv"
    assert len(pd.read_csv(groups)) == GROUPS
