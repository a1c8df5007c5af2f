"""Seconds that `snakemake -n` takes for a study of about 10,000 jobs.

Example:
    python benchmarks/dag.py --jobs 10000
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

PROJECT = Path(__file__).resolve().parent.parent
METHODS = ["SFTOnly", "flatGRPO", "Progressive", "RandomCredit"]
ROUNDS = 10
JOBS_PER_SEED = 1 + 3 * ROUNDS * 2


def main() -> None:
    """Print jobs, seconds and peak memory."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    jobs, seconds, megabytes = measure(parser.parse_args().jobs)
    print(json.dumps({"jobs": jobs, "seconds": seconds, "megabytes": megabytes}))


def measure(jobs: int) -> tuple[int, float, float]:
    """(jobs in the DAG, seconds, peak MB) of a dry run of a study with about `jobs` jobs."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        seeds = large_study(root, jobs)
        command = [sys.executable, "-m", "snakemake", "-n", "-q", "all", "rules"]
        command += ["--config", "study=large"]
        began = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
            check=True,
        )
        seconds = time.perf_counter() - began
    found = re.search(r"^total\s+(\d+)", done.stdout + done.stderr, re.MULTILINE)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return int(found.group(1)) if found else len(seeds) * JOBS_PER_SEED, seconds, peak


def large_study(root: Path, jobs: int) -> list[int]:
    """Copy the workflow to a folder, with a study `large` of about `jobs` jobs; its seeds."""
    shutil.copy(PROJECT / "Snakefile", root)
    for part in ("rules", "profiles", "configs"):
        shutil.copytree(PROJECT / part, root / part, symlinks=True)
    seeds = list(range(max(1, round(jobs / JOBS_PER_SEED))))
    study = yaml.safe_load((root / "configs/studies/bakeoff.yaml").read_text())
    study |= {"name": "large", "seeds": seeds, "rounds": ROUNDS, "methods": METHODS}
    (root / "configs/studies/large.yaml").write_text(yaml.safe_dump(study))
    return seeds


if __name__ == "__main__":
    main()
