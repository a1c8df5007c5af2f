"""H-GRPO's own experiment in small: the CPU twins of both worlds, from games to report."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter

import pandas as pd
import pytest
import yaml
from project_copy import copy_project

from hgrpo.store.plan import stages_of
from hgrpo.study.study import load_study

pytestmark = pytest.mark.slow


def run(root, *words) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def snakemake(root, study, *arguments) -> subprocess.CompletedProcess:
    profile = ("--workflow-profile", "profiles/laptop")
    return run(root, "snakemake", *profile, *arguments, "--config", f"study={study}")


@pytest.fixture(scope="module", params=["alfworld_5x40_cpu", "webshop_5x40_cpu"])
def twin(request, project, tmp_path_factory):
    """A copy of the project in which a twin has been run, and the twin's name."""
    root = tmp_path_factory.mktemp(request.param)
    copy_project(project, root)
    done = snakemake(root, request.param)
    assert done.returncode == 0, done.stdout + done.stderr
    return root, request.param


def results(twin):
    return twin[0] / "results" / twin[1]


def summary(twin, arm, seed, number):
    return json.loads(
        (results(twin) / f"rl/{arm}/seed_{seed}/round_{number}/summary.json").read_bytes()
    )


def test_every_stage_ran_every_job(twin):
    root, name = twin
    study = load_study(root / f"configs/studies/{name}.yaml")
    rows = json.loads((results(twin) / "plan.json").read_bytes())
    jobs = Counter(row["stage"] for row in rows)
    trained, seeds, rounds = 5, 2, 2
    assert set(jobs) == set(stages_of(study))
    assert jobs["rl_round"] == trained * seeds * rounds
    assert jobs["evaluate"] == jobs["rl_round"] + 1
    assert jobs["credit_fit"] == 2 * seeds * (rounds - 1)
    assert all((root / f"results/store/{row['key']}/made.json").is_file() for row in rows)
    assert re.search(r"^total +1$", snakemake(root, name, "-n").stdout, re.MULTILINE)


def test_every_arm_is_evaluated_and_reported(twin):
    episodes = pd.read_parquet(results(twin) / "report/episodes.parquet")
    rounds = episodes.groupby("method")["round"].max().to_dict()
    study = load_study(twin[0] / f"configs/studies/{twin[1]}.yaml")
    assert rounds == {name: 2 if arm.train else 0 for name, arm in study.methods.items()}
    greedy = episodes[(episodes["temperature"] == 0) & (episodes["panel"] == "test")]
    assert set(greedy.groupby(["method", "seed", "round"]).size()) == {8}
    evaluated = json.loads(
        (results(twin) / "eval/SFTOnly/seed_0/round_0/summary.json").read_text(encoding="utf-8")
    )
    assert set(evaluated["mean_return"]) == set(evaluated["success"]) != set()
    page = (results(twin) / "report/report.html").read_text(encoding="utf-8")
    sft = json.loads((results(twin) / "sft/summary.json").read_bytes())
    assert study.config.description in page and f"weights {sft['weights']}" in page


@pytest.mark.parametrize("arm", ["TurnRDV2_carry", "TurnRDV1_lean", "Progressive"])
@pytest.mark.parametrize("seed", [11, 23])
def test_the_policy_is_carried_from_round_to_round(twin, arm, seed):
    sft = json.loads((results(twin) / "sft/summary.json").read_bytes())["weights"]
    first, second = (summary(twin, arm, seed, number) for number in (1, 2))
    assert first["parents"]["policy"] == first["parents"]["sft"] == sft
    assert second["parents"]["policy"] == first["policy"] != sft
    assert second["parents"]["sft"] == sft


@pytest.mark.parametrize("arm", ["TurnRDV2_carry", "TurnRDV1_lean"])
def test_turnrd_is_fitted_between_the_rounds_and_read_in_the_second(twin, arm):
    for seed in (11, 23):
        assert (results(twin) / f"credit_fit/{arm}/seed_{seed}/round_1/model.safetensors").is_file()
        rows = [
            json.loads((folder / "train_log.json").read_bytes())["rows"][0]
            for folder in sorted((results(twin) / f"rl/{arm}/seed_{seed}").iterdir())
        ]
        # Equal shares first; then the shares of a model.
        assert "alpha_var" not in rows[0]
        assert rows[1]["alpha_var"] > 0


def test_the_comparison_of_credit_and_the_pages_that_are_asked_for(twin):
    root, name = twin
    done = snakemake(root, name, "credit_agreement", "viewer", "paper")
    assert done.returncode == 0, done.stdout + done.stderr
    credits = pd.read_parquet(results(twin) / "credit_agreement/credits.parquet")
    assert set(credits["method"]) == {
        *load_study(root / f"configs/studies/{name}.yaml").methods
    } - {"SFTOnly"}


def test_the_probe_passes_and_leaves_nothing(twin):
    root, name = twin
    before = sorted(path for path in (root / "results").iterdir() if path.name != ".probe")
    done = run(root, "hgrpo.cli.probe", f"study={name}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^all stages ran: \d+ s$", done.stdout, re.MULTILINE)
    assert not (root / "results/.probe" / name).exists()
    assert sorted(path for path in (root / "results").iterdir() if path.name != ".probe") == before


def test_its_adapter_travels_into_another_study(twin, tmp_path):
    root, name = twin
    study = yaml.safe_load((root / f"configs/studies/{name}.yaml").read_bytes())
    adapter = tmp_path / "sft"
    shutil.copytree(results(twin) / "sft", adapter)
    study |= {"name": "travelled", "methods": ["SFTOnly", "flatGRPO"], "seeds": [11]}
    study |= {"variants": {}, "rounds": 1, "sft": {"adapter": str(adapter)}}
    (root / "configs/studies/travelled.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    done = snakemake(root, "travelled")
    assert done.returncode == 0, done.stdout + done.stderr
    weights = json.loads((adapter / "summary.json").read_bytes())["weights"]
    taken = json.loads((root / "results/travelled/sft/summary.json").read_bytes())
    assert (taken["weights"], taken["taken_from"]) == (weights, str(adapter))
    page = (root / "results/travelled/report/report.html").read_text(encoding="utf-8")
    assert f"weights {weights}, taken from {adapter}" in page
    # A policy of the other world is refused by name.
    summary = json.loads((adapter / "summary.json").read_bytes())
    summary["trained_on"]["env"] = "elsewhere"
    (adapter / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    refused = snakemake(root, "travelled")
    assert refused.returncode != 0
    assert f"{adapter}/summary.json: trained_on.env: 'elsewhere', but the study" in refused.stderr
