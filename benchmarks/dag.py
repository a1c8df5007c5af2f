"""Time `snakemake -n` on our workflow and on a trivial one, with about 10,000 jobs each.

The trivial workflow has the same jobs, input files, output files and number of params per job. Its
rules contain only literals and one-line lambdas, and no logs, benchmarks, messages or resources.
Dry runs of the two workflows alternate. Times are CPU seconds, which are less affected by other
processes than wall time. Snakemake computes the DAG on one core.

Example:
    python benchmarks/dag.py --jobs 10000
"""

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from hgrpo.learning.scratch import CRITIC, TRAINER_STATE
from hgrpo.stages.order import STAGES, belongs_to_an_arm, load
from hgrpo.stages.paths import Job
from hgrpo.store.plan import below, outputs_of
from hgrpo.store.plan import flat as _flat
from hgrpo.study.study import Study, load_study

PROJECT = Path(__file__).resolve().parent.parent
METHODS = ["SFTOnly", "flatGRPO", "Progressive", "RandomCredit"]
ROUNDS = 10
JOBS_PER_SEED = 1 + 3 * ROUNDS * 2
# The trivial Snakefile has the same files as this job, with wildcards for method, seed and round.
_SAMPLE = Job("flatGRPO", 0, 2)


@dataclass(frozen=True)
class Run:
    """CPU seconds, peak memory and output of a finished command."""

    seconds: float
    megabytes: float
    output: str


def main() -> None:
    """Print the result of `measure` as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument(
        "--pairs", type=int, default=1, help="number of alternating dry runs of each"
    )
    args = parser.parse_args()
    print(json.dumps(measure(args.jobs, args.pairs)))


def measure(jobs: int, pairs: int = 1) -> dict:
    """Time dry runs of both workflows.

    Returns the number of jobs, the peak memory of our workflow in MB, and three medians over the
    pairs of runs: the CPU seconds of our workflow, those of the trivial workflow, and their ratio.

    Raises:
        ValueError: the two DAGs differ in their number of jobs.
    """
    with tempfile.TemporaryDirectory() as folder:
        ours, trivial = both_workflows(Path(folder), jobs)
        dry_run = ("-m", "snakemake", "-n", "-q", "all", "rules", "--cores", "2")
        runs = [
            (run(ours, *dry_run, "--config", "study=large"), run(trivial, *dry_run))
            for _ in range(pairs)
        ]
    counts = [_jobs(one.output) for one in runs[0]]
    if len(set(counts)) > 1:
        raise ValueError(f"the DAGs have {counts[0]} and {counts[1]} jobs; expected equal numbers")
    return {"jobs": counts[0], "megabytes": runs[0][0].megabytes} | compared(runs)


def compared(runs: Sequence[tuple[Run, Run]]) -> dict[str, float]:
    """Return each workflow's median CPU seconds, and the median ratio (ours / trivial)."""
    return {
        "seconds": statistics.median(ours.seconds for ours, _ in runs),
        "trivial_seconds": statistics.median(trivial.seconds for _, trivial in runs),
        "ratio": statistics.median(ours.seconds / trivial.seconds for ours, trivial in runs),
    }


def run(folder: Path, *arguments: str) -> Run:
    """Run Python with these arguments in a folder.

    Raises:
        subprocess.CalledProcessError: the command fails.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(seconds, after.ru_maxrss / 1024, done.stdout + done.stderr)


def _jobs(printed: str) -> int:
    return int(re.search(r"^total\s+(\d+)", printed, re.MULTILINE).group(1))


def both_workflows(root: Path, jobs: int) -> tuple[Path, Path]:
    """Create a folder with our workflow and the study `large`, and one with a trivial Snakefile."""
    ours, trivial = root / "ours", root / "trivial"
    ours.mkdir()
    trivial.mkdir()
    large_study(ours, jobs)
    study = load_study(ours / "configs/studies/large.yaml")
    (trivial / "Snakefile").write_text(trivial_snakefile(study), encoding="utf-8")
    return ours, trivial


def large_study(root: Path, jobs: int) -> None:
    """Copy the workflow to a folder, with a study `large` of about `jobs` jobs."""
    shutil.copy(PROJECT / "Snakefile", root)
    for part in ("rules", "profiles", "configs"):
        shutil.copytree(PROJECT / part, root / part, symlinks=True)
    seeds = list(range(max(1, round(jobs / JOBS_PER_SEED))))
    study = yaml.safe_load((root / "configs/studies/bakeoff_plateau.yaml").read_bytes())
    study |= {"name": "large", "seeds": seeds, "rounds": ROUNDS, "methods": METHODS}
    (root / "configs/studies/large.yaml").write_text(yaml.safe_dump(study), encoding="utf-8")


def trivial_snakefile(study: Study) -> str:
    """A Snakefile that contains only the jobs and files of a study."""
    parts = [f"rule all:\n    input: {_flat(_outputs(study, 'report'))!r}\n"]
    # Skip the two stages that have no jobs: no target needs credit_agreement, and no arm fits a
    # model.
    stages = [stage for stage in STAGES if stage not in ("credit_agreement", "credit_fit")]
    return "\n\n".join([*parts, *(_trivial_rule(study, stage) for stage in stages)])


def _outputs(study: Study, stage: str) -> dict:
    folder = load(stage).FOLDER
    return below(f"results/large/{folder}".rstrip("/"), outputs_of(stage, study))


def _trivial_rule(study: Study, stage: str) -> str:
    in_arm = belongs_to_an_arm(stage)
    needed = _flat(below("results/large", load(stage).inputs(study, _SAMPLE if in_arm else Job())))
    lines = [f"rule {stage}:", "    input:"]
    if in_arm:
        fixed = [path for path in needed if "/round_" not in path]
        moving = [path for path in needed if "/round_" in path]
        lines += [f"        {path!r}," for path in fixed]
        lines += [f"        lambda w: {_generalised(path)}," for path in moving]
    else:
        lines += [f"        {needed!r},"]
    lines += ["    output:", f"        {_flat(_outputs(study, stage))!r}"]
    lines += ["    params:", "        job=lambda w: 'results/large/job.json',"]
    if in_arm:
        first = r"[1-9]\d*" if stage == "rl_round" else r"\d+"
        lines += [
            "    wildcard_constraints:",
            f"        round=r'{first}',",
            "        seed=r'\\d+',",
            f"        method={'|'.join(METHODS)!r},",
        ]
    lines += ["    shell: 'true'"]
    return "\n".join(lines)


def _generalised(path: str) -> str:
    """Replace the sample job's method, seed and round in an input path by wildcards.

    Returns a Python expression for the path. For the policy of round 0, the expression evaluates to
    the path of the SFT policy.
    """
    number = re.search(r"/round_(\d+)", path).group(1)
    step = int(number) - _SAMPLE.round
    text = path.replace(_SAMPLE.method, "{w.method}").replace("seed_0", "seed_{w.seed}")
    text = text.replace(f"round_{number}", f"round_{{int(w.round) + {step}}}")
    name = path.rpartition("/")[2]
    sft = f"results/large/sft/adapter/{name}" if name not in (TRAINER_STATE, CRITIC) else []
    first = "w.method == 'SFTOnly'" if step == 0 else "w.round == '1'"
    return f"{sft!r} if {first} else f{text!r}"


if __name__ == "__main__":
    main()
