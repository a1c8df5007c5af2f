"""Print what a run would do: jobs by stage, how many are cached, how long the rest will take.

Durations are those of past jobs of the same stage, in this study or else in any other.

Example:
    python -m hgrpo.cli.plan study=bakeoff seeds=11,23 rounds=7
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from hgrpo.cli.entry import run
from hgrpo.config.study import Resources, StageResources, load_study
from hgrpo.errors import UserError

STAGES = ("study_config", "assets", "expert", "base", "sft", "rl_round", "turnrd_fit", "evaluate")
LAST = ("merge", "figures", "report")


@dataclass(frozen=True)
class StagePlan:
    """Jobs of one stage; `seconds` is the mean of past jobs, None where there were none."""

    stage: str
    jobs: int
    pending: int
    seconds: float | None
    needs: StageResources

    @property
    def core_minutes(self) -> float | None:
        """Cores times minutes of the pending jobs."""
        if not self.pending:
            return 0.0
        if self.seconds is None:
            return None
        return self.pending * self.seconds / 60 * self.needs.threads


def main() -> None:
    """Ask snakemake for its plan and print it as a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="as snakemake's --config")
    parser.add_argument("--cores", type=int, default=2, help="cores that run jobs (default 2)")
    args = parser.parse_args()
    config = dict(setting.split("=", 1) for setting in args.settings if "=" in setting)
    if len(config) < len(args.settings):
        raise UserError(f"KEY=VALUE was expected: {' '.join(args.settings)}")
    name = config.pop("study", "bakeoff")
    study = load_study(Path("configs/studies") / f"{name}.yaml", config)
    jobs, pending = count_jobs(snakemake_summary(args.settings))
    plans = [
        StagePlan(
            stage,
            jobs[stage],
            pending[stage],
            mean_seconds(Path("results"), name, stage),
            needs(study.config.resources, stage),
        )
        for stage in STAGES + LAST
        if jobs[stage]
    ]
    print(render(plans, args.cores))


def snakemake_summary(settings: list[str]) -> str:
    """The table of `snakemake --summary`, one line per output file.

    Raises:
        UserError: snakemake fails, with its last line.
    """
    command = [sys.executable, "-m", "snakemake", "--summary"]
    if settings:
        command += ["--config", *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise UserError(f"snakemake --summary: {lines[-1]}")
    return done.stdout


def count_jobs(summary: str) -> tuple[Counter, Counter]:
    """Jobs by rule, and pending jobs by rule, from the lines of `snakemake --summary`.

    All files of a job stand in one folder, or in `adapter` or `tables` below it.
    """
    rows = [line.split("\t") for line in summary.splitlines()]
    rows = [row for row in rows if len(row) > 4 and row[0] != "output_file"]
    plans = {(row[2], _home(row[0])): row[-1] for row in rows}
    jobs = Counter(rule for rule, _ in plans)
    pending = Counter(rule for (rule, _), plan in plans.items() if plan.strip() != "no update")
    return jobs, pending


def _home(output: str) -> str:
    return output.rpartition("/")[0].removesuffix("/adapter").removesuffix("/tables")


def mean_seconds(results: Path, study: str, stage: str) -> float | None:
    """Mean duration of past jobs of a stage, from Snakemake's benchmark files."""
    for owner in (study, "*"):
        files = results.glob(f"{owner}/benchmarks/{stage}/*.jsonl")
        seconds = [
            json.loads(line)["s"] for file in files for line in file.read_text().splitlines()
        ]
        if seconds:
            return statistics.mean(seconds)
    return None


def needs(resources: Resources, stage: str) -> StageResources:
    """Resources of a stage; those that are not configured take one core."""
    return getattr(resources, "report" if stage in LAST else stage, StageResources())


def render(plans: list[StagePlan], cores: int) -> str:
    """The table, with its sum and the least wall time on `cores` cores."""
    head = f"{'stage':<14}{'jobs':>6}{'cached':>8}{'to run':>8}{'s each':>9}{'core-min':>10}"
    lines = [head]
    for plan in plans:
        lines.append(
            f"{plan.stage:<14}{plan.jobs:>6}{plan.jobs - plan.pending:>8}{plan.pending:>8}"
            f"{_number(plan.seconds):>9}{_number(plan.core_minutes):>10}"
        )
    unknown = [plan.stage for plan in plans if plan.core_minutes is None]
    total = sum(plan.core_minutes or 0 for plan in plans)
    pending = sum(plan.pending for plan in plans)
    lines.append(
        f"{pending} jobs to run, at least {total / cores:.1f} minutes on {cores} cores"
        + (f"; not counting {', '.join(unknown)}, which never ran here" if unknown else "")
    )
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    run(main)
