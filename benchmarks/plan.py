"""Time of `make plan` against `snakemake --summary`, for a study of about 10,000 jobs.

Estimates come from about as many benchmark files as the study has jobs, as if its results had been
deleted. `snakemake --summary`, the table that `make plan` reads, runs on the trivial Snakefile of
`benchmarks/dag.py`. Both commands take turns in the same run, and times are CPU seconds.

Example:
    python benchmarks/plan.py --jobs 10000
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from dag import METHODS, ROUNDS, both_workflows, compared, run

from hgrpo.study.study import load_study

STAGES = ("rl_round", "evaluate")
_SECONDS = 12.5


def main() -> None:
    """Compare the planning of our workflow with that of a trivial one; print the result as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--pairs", type=int, default=1, help="plans of each, taken in turn")
    args = parser.parse_args()
    print(json.dumps(measure(args.jobs, args.pairs)))


def measure(jobs: int, pairs: int = 1) -> dict:
    """Numbers of jobs and of benchmark files; CPU seconds of both workflows, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        ours, trivial = both_workflows(Path(folder), jobs)
        past = ours / "results" / "large"
        study = load_study(ours / "configs/studies/large.yaml")
        files = _past_jobs(past / "benchmarks", study.config.seeds)
        found = [
            (
                run(ours, "-m", "hgrpo.cli.plan", "study=large"),
                run(trivial, "-m", "snakemake", "--summary"),
            )
            for _ in range(pairs)
        ]
    lines = [line.split() for line in found[-1][0].output.splitlines() if line]
    rows = {cells[0]: cells for cells in lines}
    if any(rows[stage][4] != str(_SECONDS) for stage in STAGES):
        sys.exit("error: the benchmark files of past jobs were not counted")
    return {"jobs": int(rows["all"][1]), "files": files} | compared(found)


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
            (folder / stage / name).write_text(f'{{"s": {_SECONDS}}}\n', encoding="utf-8")
    return len(STAGES) * len(names)


if __name__ == "__main__":
    main()
