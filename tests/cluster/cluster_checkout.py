"""Copies of the project with a study small enough for one node, and a round's accidents."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml
from project_copy import copy_project

NAME = "cluster"
STUDY = {
    "name": NAME,
    "env": "alfworld-few",
    "model": "tiny",
    "methods": ["SFTOnly", "flatGRPO"],
    "seeds": [11],
    "rounds": 1,
    "training": {"steps_per_round": 3, "tasks_per_step": 4, "rollouts_per_task": 4},
    "sft": {"epochs": 1, "batch_trajectories": 16, "validation_share": 0.1},
    "evaluation": {
        "test_games": 16,
        "validation_games": 8,
        "sft_temperatures": [0.0],
    },
    "resources": {"rl_round": {"gpu": 1}},
}
ROUND = "rl/flatGRPO/seed_11/round_1"
# These files are the same, byte for byte, wherever the study is run.
SAME_FILES = (
    "assets/panels.json",
    "assets/tasks.tar.gz",
    "expert/trajectories.parquet",
    "base/companions.tar.gz",
    "base/model.safetensors",
    "sft/adapter/model.safetensors",
    "eval/SFTOnly/seed_0/round_0/episodes.parquet",
    f"{ROUND}/adapter/model.safetensors",
    f"{ROUND}/adapter/trainer_state.pt",
    f"{ROUND}/sequences.parquet",
    f"{ROUND}/turns.parquet",
    "eval/flatGRPO/seed_11/round_1/episodes.parquet",
    "report/methods_comparison.json",
    "report/tables/methods.csv",
    "report/figures/learning_curves.svg",
)
# PYTHONPATH makes every process run this first. It sends a signal to one round after the first
# step, and writes down the round's process and GPU.
ACCIDENT = """\
import os, pathlib, sys, threading, time

def accident(signal, record):
    while not list(pathlib.Path("results/store").glob("*/unfinished/*/step_00000")):
        time.sleep(0.002)
    record.write_text(f"{os.getpid()} {os.environ.get('CUDA_VISIBLE_DEVICES')}", encoding="utf-8")
    os.kill(os.getpid(), int(signal))

record = pathlib.Path("accident")
if {"hgrpo.cli.stage", "rl_round"} <= {*sys.orig_argv} and not record.exists():
    signal = os.environ.get("ACCIDENT")
    if signal:
        threading.Thread(target=accident, args=(signal, record), daemon=True).start()
"""


@dataclass(frozen=True)
class Checkout:
    """A copy of the project with the study `cluster`."""

    root: Path

    def command(self, *arguments: str) -> list[str]:
        """A snakemake command about the study; --profile of Slurm's test node."""
        profile = ["--workflow-profile", "profiles/slurm-test"]
        words = [sys.executable, "-m", "snakemake", *profile, *arguments]
        return [*words, "--config", f"study={NAME}"]

    def environment(self, accident: int | None = None) -> dict[str, str]:
        """A signal as `accident` is what the first round gets after its first step."""
        path = os.pathsep.join([str(self.root / "accidents"), str(self.root)])
        variables = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        return os.environ | variables | ({"ACCIDENT": str(accident)} if accident else {})

    def snakemake(
        self, *arguments: str, accident: int | None = None
    ) -> subprocess.CompletedProcess:
        """Run snakemake to its end, on Slurm."""
        return subprocess.run(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment(accident),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    @property
    def results(self) -> Path:
        return self.root / "results" / NAME


def make_checkout(project: Path, root: Path) -> Checkout:
    """A copy of the project in `root`, which must not exist."""
    root.mkdir()
    copy_project(project, root)
    smoke = yaml.safe_load((root / "configs/envs/alfworld-smoke.yaml").read_bytes())
    smoke["expert"]["trajectories"] = 300
    (root / "configs/envs/alfworld-few.yaml").write_text(yaml.safe_dump(smoke), encoding="utf-8")
    (root / f"configs/studies/{NAME}.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    (root / "accidents").mkdir()
    (root / "accidents/sitecustomize.py").write_text(ACCIDENT, encoding="utf-8")
    return Checkout(root)


def run_id(output: str) -> str:
    """What the executor calls its jobs, from what snakemake printed."""
    return re.search(r"SLURM run ID: (\S+)", output).group(1)
