"""A judge's key reaches the jobs of a cluster, and stands in no command and no file."""

import os
import subprocess
import sys

import pytest
import yaml
from pretend_slurm import pretend_slurm

KEY = "sk-very-secret"
ROUND = "results/grid/rl/Paid/seed_11/round_1/summary.json"


@pytest.mark.slow
def test_a_slurm_job_has_the_key_of_the_shell_that_started_the_run(checkout):
    root = checkout.root
    study = yaml.safe_load((root / "configs/studies/grid.yaml").read_bytes())
    paid = {"model": "gpt-4o-mini", "base_url": "https://api.openai.com/v1"}
    study["methods"].append("Paid")
    study["variants"] = {"Paid": {"of": "LLMJudge", "label": "paid judge", "credit": paid}}
    (root / "configs/studies/grid.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")
    stub = root / "stub/python"
    stub.rename(root / "stub/own_python")
    stub.write_text(
        f'#!/bin/sh\n[ "$3" = rl_round ] && printenv OPENAI_API_KEY > {root}/seen\n'
        f'exec {root}/stub/own_python "$@"\n',
        encoding="utf-8",
    )
    stub.chmod(0o755)
    slurm = pretend_slurm(root / "slurm")
    paths = f"{slurm}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "snakemake", "--workflow-profile", "profiles/slurm-test"]
    env = os.environ | {"PATH": paths, "PYTHONPATH": str(root)}

    def run(env):
        words = [*command, ROUND, "--retries=0", "--config", "study=grid"]
        return subprocess.run(words, cwd=root, env=env, capture_output=True, encoding="utf-8")

    without = run(env)
    assert without.returncode and "OPENAI_API_KEY" in without.stdout + without.stderr
    assert not (slurm / "jobs").exists()
    done = run(env | {"OPENAI_API_KEY": KEY})
    assert done.returncode == 0, done.stdout + done.stderr
    assert (root / "seen").read_text(encoding="utf-8") == f"{KEY}\n"
    (root / "seen").unlink()
    assert KEY not in done.stdout + done.stderr + (slurm / "commands").read_text(encoding="utf-8")
    matches = subprocess.run(["grep", "-rl", KEY, root], capture_output=True, encoding="utf-8")
    assert matches.stdout == ""
