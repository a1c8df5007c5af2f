"""The study `smoke` from games to report, with the real commands; then what a rerun does."""

import json
import os
import re
import shutil
import subprocess
import sys

import check_published
import evidence
import pandas as pd
import publish
import pytest
import yaml
from project_copy import copy_project

from hgrpo.study.study import load_study

pytestmark = pytest.mark.slow

STUDY = "results/smoke"
TRAINED = ("flatGRPO", "Oracle", "Progressive", "RandomCredit", "LLMJudge", "TurnRDV2CF", "GiGPO")


def snakemake(root, *arguments, study="smoke", **environment) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "snakemake", *arguments, "--config", f"study={study}"]
    path = os.pathsep.join([environment.pop("first", ""), str(root)]).lstrip(os.pathsep)
    return subprocess.run(
        command,
        cwd=root,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture(scope="module")
def root(project, tmp_path_factory):
    """A copy of the project in which the study has been run."""
    root = tmp_path_factory.mktemp("smoke")
    copy_project(project, root)
    done = snakemake(root)
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def test_every_arm_is_in_the_table(root):
    episodes = pd.read_parquet(root / STUDY / "report/episodes.parquet")
    arms = episodes.groupby("method")["round"].max().to_dict()
    assert arms == {"SFTOnly": 0} | dict.fromkeys(TRAINED, 2)
    test = episodes[(episodes["panel"] == "test") & (episodes["temperature"] == 0)]
    study = yaml.safe_load((root / "configs/studies/smoke.yaml").read_text(encoding="utf-8"))
    assert set(test.groupby(["method", "round"]).size()) == {study["evaluation"]["test_games"]}
    comparison = json.loads((root / STUDY / "report/methods_comparison.json").read_bytes())
    assert set(comparison) >= set(arms)
    assert (root / STUDY / "report/report.html").stat().st_size > 10_000


def test_every_trained_arm_moved_away_from_the_sft_policy_its_own_way(root):
    sft = (root / STUDY / "sft/adapter/model.safetensors").read_bytes()
    trained = [
        (root / STUDY / f"rl/{arm}/seed_11/round_2/adapter/model.safetensors").read_bytes()
        for arm in TRAINED
    ]
    assert len({sft, *trained}) == 1 + len(TRAINED)


def test_nothing_is_left_to_do_and_no_scratch_files_remain(root):
    assert nothing_to_do(snakemake(root, "-n"))
    left = [path.name for path in (root / STUDY).rglob("*") if ".tmp-" in path.name]
    assert left == []


def nothing_to_do(done) -> bool:
    """Whether a plan has no job but that which prints the report's headline."""
    return bool(re.search(r"^total +1$", done.stdout, re.MULTILINE))


def files_of(folder):
    """Path -> bytes, of all below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in files}


def test_figures_are_redrawn_from_cached_results_without_torch(root, tmp_path):
    (tmp_path / "torch.py").write_text(
        "raise ImportError('torch is not to be imported')\n", encoding="utf-8"
    )
    index = (root / STUDY / "report/figures/index.json").resolve()
    before = files_of(index.parent)
    assert len(before) > 2 * len(TRAINED)
    shutil.rmtree(index.parent)
    done = snakemake(root, "figures", first=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert files_of(index.parent) == before


def test_the_published_evidence_gives_the_reports_tables_and_figures(root, tmp_path):
    study_file, report = root / "configs/studies/smoke.yaml", root / STUDY / "report"
    run = evidence.of_run(root / STUDY, study_file)
    assert run.lacking(load_study(study_file)) == []
    evidence.write(run, tmp_path)
    games = (tmp_path / evidence.GAMES).read_bytes()
    assert games == (report / "episodes.parquet").read_bytes()
    docs = tmp_path / "figures"
    docs.mkdir()
    publish.make(tmp_path, docs)
    tables = {path.name: path for path in tmp_path.glob("*.csv")}
    assert {"methods.csv", "cost.csv", "turnrd.csv"} <= tables.keys()
    cost = pd.read_csv(report / "tables/cost.csv").drop(columns=evidence.TIMINGS, errors="ignore")
    assert check_published.differences(pd.read_csv(tables.pop("cost.csv")), cost) == []
    folders = dict.fromkeys(tables, report / "tables") | {"turnrd.csv": report / "figures"}
    for name, path in tables.items():
        assert path.read_bytes() == (folders[name] / name).read_bytes(), name
    figures = list(docs.iterdir())
    assert len(figures) > 3
    for path in figures:
        assert path.read_bytes() == (report / "figures" / path.name).read_bytes(), path.name


def test_a_round_run_again_writes_the_same_weights(root):
    place = "rl/Progressive/seed_11/round_1"
    weights = root / STUDY / place / "adapter/model.safetensors"
    before = weights.read_bytes()
    entry = (root / STUDY / place).resolve().parents[3]
    assert entry.parent.name == "store"
    shutil.rmtree(entry)
    done = snakemake(root, f"{STUDY}/{place}/adapter/model.safetensors")
    assert done.returncode == 0, done.stdout + done.stderr
    assert weights.read_bytes() == before


def test_all_assigners_credit_the_same_cached_rollouts(root):
    done = snakemake(root, "credit_agreement")
    assert done.returncode == 0, done.stdout + done.stderr
    folder = root / STUDY / "credit_agreement"
    credits = pd.read_parquet(folder / "credits.parquet")
    for number in (0, 1):
        turns = len(pd.read_parquet(root / STUDY / f"truth/round_{number}/turns.parquet"))
        rows = credits[credits["round"] == number]
        assert rows.groupby("method").size().to_dict() == dict.fromkeys(TRAINED, turns)
    truth = pd.read_csv(folder / "truth.csv").groupby("round")["method"].agg(set)
    assert truth.to_dict() == {number: {*TRAINED, "shuffled"} for number in (0, 1)}
    checks = pd.read_csv(folder / "checks.csv").set_index("method")
    assert {"LLMJudge", "TurnRDV2CF", "GiGPO"} <= set(checks.index)
    assert (folder / "agreement.svg").is_file() and (folder / "gallery.svg").is_file()


def test_another_study_takes_every_job_that_is_equal(root):
    study = yaml.safe_load((root / "configs/studies/smoke.yaml").read_bytes())
    arms = ["SFTOnly", "flatGRPO", "TurnRDV2CF", "slow"]
    variant = {"of": "Progressive", "label": "slow", "training": {"lr": 1e-5}}
    study |= {"name": "twin", "methods": arms, "variants": {"slow": variant}}
    (root / "configs/studies/twin.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    done = snakemake(root, study="twin")
    assert done.returncode == 0, done.stdout + done.stderr

    def keys(name: str) -> dict[str, str]:
        rows = json.loads((root / f"results/{name}/plan.json").read_bytes())
        return {f"{row['stage']} {row['method']} {row['round']}": row["key"] for row in rows}

    first, twin = keys("smoke"), keys("twin")
    messages = {f"{stage} slow {number}" for stage in ("rl_round", "evaluate") for number in (1, 2)}
    pages = {f"{stage}  0" for stage in ("study_config", "merge", "figures", "report")}
    assert {job for job, key in twin.items() if first.get(job) != key} == messages | pages
    assert nothing_to_do(snakemake(root, "-n", study="twin"))
