"""Seconds that `make plan` takes for a study of about 10,000 jobs, all of them to run.

Durations and sizes come from as many benchmark files as the study has jobs. The files belong to
another study with the same model and engine, so that the plan uses all of them.

Example:
    python benchmarks/plan.py --jobs 10000
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from dag import METHODS, PROJECT, ROUNDS, large_study

from hgrpo.study.study import load_study

STAGES = ("rl_round", "evaluate")


def main() -> None:
    """Print jobs, seconds and benchmark files read."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    jobs, files, seconds = measure(parser.parse_args().jobs)
    print(json.dumps({"jobs": jobs, "files": files, "seconds": seconds}))


def measure(jobs: int) -> tuple[int, int, float]:
    """(jobs planned, benchmark files of past jobs, seconds) of a study with about `jobs` jobs."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        seeds = large_study(root, jobs)
        past = root / "results" / "past"
        files = _past_jobs(past / "benchmarks", seeds)
        resolved = load_study(root / "configs/studies/large.yaml").resolved()
        (past / "config.yaml").write_text(yaml.safe_dump(resolved, sort_keys=False))
        command = [sys.executable, "-m", "hgrpo.cli.plan", "study=large"]
        began = time.perf_counter()
        subprocess.run(
            command,
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(PROJECT)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        seconds = time.perf_counter() - began
        plan = json.loads((root / "results/large/plan.json").read_text())
    if any(job["seconds"] is None for job in plan["jobs"] if job["stage"] in STAGES):
        sys.exit("error: the benchmark files of past jobs were not counted")
    return len(plan["jobs"]), files, seconds


def _past_jobs(folder: Path, seeds: list[int]) -> int:
    """Write benchmark files of a study with the same arms; return their number."""
    names = [
        f"{method}.seed_{seed}.round_{number}.jsonl"
        for method in METHODS[1:]
        for seed in seeds
        for number in range(1, ROUNDS + 1)
    ]
    for stage in STAGES:
        (folder / stage).mkdir(parents=True)
        for name in names:
            (folder / stage / name).write_text('{"s": 12.5}\n')
    return len(STAGES) * len(names)


if __name__ == "__main__":
    main()
