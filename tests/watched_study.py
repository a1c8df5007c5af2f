"""A small study whose jobs tests finish, begin and stop by writing files."""

import json
import os
import socket
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import yaml
from places import PROJECT

from hgrpo.progress import Progress, progress_file
from hgrpo.study.recorded import recorded_file
from hgrpo.study.study import load_study
from hgrpo.workflow.watch.jobs import StudyJob, study_jobs

METHODS = ["SFTOnly", "flatGRPO", "TurnRDV2"]
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


def record(results: Path, **overrides: object) -> Path:
    """Write config.yaml of the study smoke with three arms and two rounds."""
    given = {"methods": METHODS} | overrides
    study = load_study(PROJECT / "configs/studies/smoke.yaml", given)
    results.mkdir(parents=True, exist_ok=True)
    recorded_file(results).write_text(
        yaml.safe_dump(study.resolved(), sort_keys=False), encoding="utf-8"
    )
    return results


def jobs(results: Path) -> dict[str, StudyJob]:
    """Name -> job."""
    study = load_study(PROJECT / "configs/studies/smoke.yaml", {"methods": METHODS})
    return {job.name: job for job in study_jobs(study, results)}


def finish(job: StudyJob, at: float) -> None:
    """Write a job's outputs at a time (seconds since the epoch), with what the monitor reads."""
    for path in map(Path, job.outputs):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "train_log.json":
            path.write_text(json.dumps({"rows": [row(0), row(1)]}), encoding="utf-8")
        elif path.name == "episodes.parquet":
            columns = {"panel": ["test"] * 4, "temperature": [0.0] * 4}
            pd.DataFrame(columns | {"success": [True, True, True, False]}).to_parquet(path)
        elif not path.exists():
            path.touch()
        os.utime(path, (at, at))


def begin(job: StudyJob, at: float, **changes: object) -> None:
    """Write the progress of a job of this process, as of a time."""
    now = Progress(socket.gethostname(), os.getpid(), at, at)
    path = progress_file(job.log)
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
