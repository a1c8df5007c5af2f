"""Print what a run would do: jobs by stage, how many are cached, how long the rest will take.

Durations are those of past jobs of the same stage; where this study has none yet they are taken
from other studies, whatever their size, and marked with a star. Of a judge that is not the offline
rubric it says how many calls the rounds to run will want at most.

Example:
    python -m hgrpo.cli.plan study=bakeoff seeds=11,23 rounds=7
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hgrpo.cli.entry import run
from hgrpo.config.preflight import missing_key
from hgrpo.config.study import Resources, StageResources, Study, load_study
from hgrpo.credit.judge.settings import SERVICE
from hgrpo.errors import UserError

STAGES = ("study_config", "assets", "expert", "base", "sft", "rl_round", "turnrd_fit", "evaluate")
LAST = ("merge", "figures", "report")


@dataclass(frozen=True)
class StagePlan:
    """Jobs of one stage.

    Attributes:
        seconds: mean of past jobs, None where there were none.
        borrowed: those jobs were other studies'.
    """

    stage: str
    jobs: int
    pending: int
    seconds: float | None
    needs: StageResources
    borrowed: bool = False

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
    found = read_jobs(snakemake_summary(args.settings))
    jobs, pending = count_jobs(found)
    plans = []
    for stage in STAGES + LAST:
        if jobs[stage]:
            seconds, borrowed = mean_seconds(Path("results"), name, stage)
            asked = needs(study.config.resources, stage)
            plans.append(StagePlan(stage, jobs[stage], pending[stage], seconds, asked, borrowed))
    print("\n".join([render(plans, args.cores), *judge_lines(study, found, os.environ)]))


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


def read_jobs(summary: str) -> dict[tuple[str, str], bool]:
    """(rule, folder) -> whether the job is to run, from the lines of `snakemake --summary`.

    All files of a job stand in one folder, or in `adapter` or `tables` below it.
    """
    rows = [line.split("\t") for line in summary.splitlines()]
    rows = [row for row in rows if len(row) > 4 and row[0] != "output_file"]
    return {(row[2], _home(row[0])): row[-1].strip() != "no update" for row in rows}


def count_jobs(jobs: Mapping[tuple[str, str], bool]) -> tuple[Counter, Counter]:
    """Jobs by rule, and pending jobs by rule."""
    pending = Counter(rule for (rule, _), to_run in jobs.items() if to_run)
    return Counter(rule for rule, _ in jobs), pending


def _home(output: str) -> str:
    return output.rpartition("/")[0].removesuffix("/adapter").removesuffix("/tables")


def mean_seconds(results: Path, study: str, stage: str) -> tuple[float | None, bool]:
    """Mean duration of past jobs of a stage, and whether it is other studies'.

    Read from Snakemake's benchmark files; (None, False) where there are none.
    """
    for owner in (study, "*"):
        files = results.glob(f"{owner}/benchmarks/{stage}/*.jsonl")
        seconds = [
            json.loads(line)["s"] for file in files for line in file.read_text().splitlines()
        ]
        if seconds:
            return statistics.mean(seconds), owner != study
    return None, False


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
            + ("*" if plan.borrowed and plan.pending else "")
        )
    unknown = [plan.stage for plan in plans if plan.core_minutes is None]
    total = sum(plan.core_minutes or 0 for plan in plans)
    pending = sum(plan.pending for plan in plans)
    lines.append(
        f"{pending} jobs to run, at least {total / cores:.1f} minutes on {cores} cores"
        + (f"; not counting {', '.join(unknown)}, which never ran here" if unknown else "")
    )
    if any(plan.borrowed and plan.pending for plan in plans):
        lines.append("* seconds of other studies, whose games, rounds or models may differ in size")
    return "\n".join(lines)


def judge_lines(
    study: Study, jobs: Mapping[tuple[str, str], bool], environment: Mapping[str, str]
) -> list[str]:
    """Of each judge that is not the offline rubric: most calls of the rounds to run, and its caps.

    Args:
        study: in hand.
        jobs: from `read_jobs`.
        environment: of the process, which may hold the judge's key.
    """
    to_run = Counter(
        folder.split("/")[-3]
        for (rule, folder), runs in jobs.items()
        if rule == "rl_round" and runs
    )
    lines = []
    for name, arm in study.methods.items():
        judge = arm.credit.settings
        if not to_run[name] or arm.credit.kind != "judge" or judge["base_url"] == SERVICE:
            continue
        training = study.training[name]
        calls = to_run[name] * training.steps_per_round * training.tasks_per_step
        if judge["variant"] == "trajectory":
            calls *= training.rollouts_per_task
        caps = [
            f"{cap} {judge[cap]}" for cap in ("max_calls", "max_dollars") if judge[cap] is not None
        ]
        unset = missing_key(arm, environment)
        lines.append(
            f"{name}: up to {calls:,} calls to {judge['model']} at {judge['base_url']}, without "
            "repeats; known answers are not asked for again"
            + (f"; caps of the study: {', '.join(caps)}" if caps else "")
            + (f"; {unset} is not set" if unset else "")
        )
    return lines


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    run(main)
