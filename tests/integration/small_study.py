"""The stages of the laptop study, run by their command lines, small enough for a test."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from forks import Forks
from stage_settings import stage_settings

from hgrpo.study.study import load_study

TRAINING = {"steps_per_round": 3, "tasks_per_step": 6, "rollouts_per_task": 4}


@dataclass(frozen=True)
class SmallStudy:
    """Folders of finished stages, and how to run further ones."""

    root: Path
    configs: dict[str, dict]
    forks: Forks

    def command(self, stage: str, **options: object) -> list[str]:
        """Command line of a stage; an option's value None leaves it out."""
        config = json.dumps(options.pop("config", self.configs[stage]))
        words = [sys.executable, "-m", "hgrpo.cli.stage", stage, "--config", config]
        for name, value in options.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return words

    def run(self, stage: str, **options: object) -> subprocess.CompletedProcess:
        """Run a stage to its end."""
        module, *arguments = self.command(stage, **options)[2:]
        return self.forks.run(module, *arguments, cwd=Path.cwd(), env=environment())

    def run_alone(self, stage: str, **options: object) -> subprocess.CompletedProcess:
        """Run a stage in a process that shares nothing with those of `run`."""
        return subprocess.run(
            self.command(stage, **options), capture_output=True, encoding="utf-8", env=environment()
        )

    def round_options(self, out: Path, **changes: object) -> dict:
        """Options of round 1 of seed 11, from the SFT policy."""
        return {
            "seed": 11,
            "round": 1,
            "assets": self.root / "assets",
            "base": self.root / "base",
            "sft": self.root / "sft" / "adapter",
            "policy": self.root / "sft" / "adapter",
            "scratch": out.parent / f"{out.name}-scratch",
            "out": out,
        } | changes

    def evaluation_options(self, out: Path, **changes: object) -> dict:
        """Options of an evaluation of the SFT policy."""
        return {
            "method": "SFTOnly",
            "seed": 11,
            "round": 0,
            "assets": self.root / "assets",
            "base": self.root / "base",
            "policy": self.root / "sft" / "adapter",
            "out": out,
        } | changes


def environment() -> dict[str, str]:
    """One thread, whatever the machine: results must not depend on it."""
    return os.environ | {"OMP_NUM_THREADS": "1"}


def make_study(
    project: Path,
    root: Path,
    forks: Forks,
    trajectories: int = 1000,
    until: str = "sft",
) -> SmallStudy:
    """Run assets, expert, base and SFT in `root`, or those `until` one of them."""
    study = load_study(project / "configs/studies/bakeoff_plateau.yaml", {})
    configs = {stage: stage_settings(study, stage) for stage in ("assets", "expert", "base", "sft")}
    configs["rl_round"] = stage_settings(study, "rl_round", "Progressive")
    configs["rl_round"]["training"] |= TRAINING
    configs["evaluate"] = stage_settings(study, "evaluate", "SFTOnly")
    configs["evaluate"]["evaluation"] |= {
        "test_games": 24,
        "validation_games": 12,
        "sft_temperatures": [0.0, 1.0],
    }
    for stage in configs.values():
        if "panels" in stage.get("env", ()):
            stage["env"]["panels"] = {"train": 60, "validation": 12, "test": 24}
    configs["expert"]["env"]["expert"]["trajectories"] = trajectories
    configs["base"]["model"]["tiny"]["pretrain_trajectories"] = 64
    configs["sft"]["sft"] |= {"epochs": 2.0, "batch_trajectories": 8}
    made = SmallStudy(root, configs, forks)
    for stage, options in (
        ("assets", {"seed": 0}),
        ("expert", {"assets": root / "assets", "seed": 0}),
        ("base", {"expert": root / "expert"}),
        ("sft", {"base": root / "base", "expert": root / "expert"}),
    ):
        done = made.run(stage, **options, out=root / stage)
        assert done.returncode == 0, done.stderr
        if stage == until:
            break
    return made
