"""A small study in the working folder whose jobs tests finish, begin and stop by writing files."""

import json
import os
import socket
import time
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import yaml
from places import PROJECT

from hgrpo.progress import Progress, progress_file
from hgrpo.store.entry import link, read_made, record, write_job, write_plan
from hgrpo.store.plan import Plan, Planned, flat
from hgrpo.study.study import load_study

METHODS = ["SFTOnly", "flatGRPO", "TurnRDV2"]
# Stages before the SFT policy.
FIRST = ("study_config", "assets", "expert", "base")
# A small study of houses.
HOUSES = {
    "env": "alfworld-smoke",
    "model": "tiny",
    "methods": [
        "SFTOnly",
        "flatGRPO",
        "Progressive",
        "RandomCredit",
        "LLMJudge",
        "TurnRDV2CF",
        "GiGPO",
    ],
    "training.steps_per_round": 2,
    "training.tasks_per_step": 4,
    "training.rollouts_per_task": 4,
    "sft.epochs": 1,
    "evaluation.test_games": 16,
    "evaluation.validation_games": 8,
}


class Watched:
    """The study smoke, with three arms and two rounds, whose first job has ended.

    Attributes:
        plan: its plan.
        results: results/smoke.
        jobs: name -> job.
    """

    def __init__(self, **overrides: object):
        overlay = {"methods": METHODS} | overrides
        self.plan = Plan(load_study(PROJECT / "configs/studies/smoke.yaml", overlay))
        self.results = Path(self.plan.root)
        self.jobs = {job.name: job for job in self.plan.jobs()}
        write_plan(self.plan)
        self.finish("study_config")

    def finish(self, *names: str, seconds: float = 0.0, **content: object) -> None:
        """Write the outputs of jobs that took `seconds`, with what the monitor reads.

        Args:
            names: of the jobs.
            content: stem of a file -> what it holds, as text or as a value of JSON.
        """
        for job in map(self.jobs.get, names):
            file = write_job(self.plan, job, [])
            for path in map(Path, flat(job.outputs)):
                path.parent.mkdir(parents=True, exist_ok=True)
                self._write(path, content)
            record(json.loads(file.read_bytes()), job.entry, time.time() - seconds)
            link(self.results, [read_made(job.entry)])

    def _write(self, path: Path, content: dict) -> None:
        if path.stem in content:
            text = content[path.stem]
            text = text if isinstance(text, str) else json.dumps(text)
            path.write_text(text, encoding="utf-8")
        elif path.name == "config.yaml":
            text = yaml.safe_dump(self.plan.study.resolved(), sort_keys=False)
            path.write_text(text, encoding="utf-8")
        elif path.name == "train_log.json":
            path.write_text(json.dumps({"rows": [row(0), row(1)]}), encoding="utf-8")
        elif path.name == "episodes.parquet":
            columns = {"panel": ["test"] * 4, "temperature": [0.0] * 4}
            pd.DataFrame(columns | {"success": [True, True, True, False]}).to_parquet(path)
        else:
            path.touch()


def begin(job: Planned, at: float, **changes: object) -> None:
    """Write the progress of a job of this process, as of a time (seconds since the epoch)."""
    now = Progress(socket.gethostname(), os.getpid(), at, at)
    path = progress_file(Path(job.log))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(replace(now, **changes))), encoding="utf-8")


def bar(done: int, total: int, unit: str, left_s: float | None = None) -> dict:
    """What a bar writes."""
    return {"done": done, "total": total, "unit": unit, "left_s": left_s, "postfix": "loss=0.5"}


def row(step: int, **changes: object) -> dict:
    """A row of a round's log."""
    return {
        "step": step,
        "mean_reward": 0.25,
        "success_rate": 0.5,
        "observed_kl": 0.001,
        "dead_groups": 3,
        "n_groups": 16,
        "elapsed_s": 10.0,
    } | changes
