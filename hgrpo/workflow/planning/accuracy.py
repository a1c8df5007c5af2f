"""Accuracy of a plan: the seconds it expected against the seconds its jobs took."""

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hgrpo.atomic import atomic_file
from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES
from hgrpo.workflow.planning.forecast import Forecast
from hgrpo.workflow.planning.past_jobs import benchmark_of, benchmark_seconds

PLAN = "plan.json"


@dataclass(frozen=True)
class StageCheck:
    """Planned jobs of a stage that have run since the plan was made.

    Attributes:
        stage: name of the rule.
        jobs: number of jobs that ran and had an estimate.
        planned_s, taken_s: sums over these jobs.
        without_estimate: number of jobs that ran and had no estimate.
    """

    stage: str
    jobs: int
    planned_s: float
    taken_s: float
    without_estimate: int


@dataclass(frozen=True)
class Check:
    """A plan compared with the seconds that its jobs took.

    Attributes:
        named: number of jobs in the plan.
        stages: stages with at least one job that ran, in the pipeline's order.
        differing: settings whose values have changed since the plan was made.
    """

    named: int
    stages: list[StageCheck]
    differing: list[str]


def save_plan(folder: Path, expected: Iterable[Forecast], asked: Mapping[str, object]) -> None:
    """Write what is expected of each job to run into a study's folder.

    Args:
        folder: results/<study>.
        expected: forecasts of the jobs; finished jobs are left out.
        asked: the command's arguments, as JSON types. `study` holds the settings that
            `check_plan` will compare.
    """
    jobs = [
        {
            "stage": one.job.stage,
            "name": one.job.name,
            "seconds": one.seconds and one.seconds.value,
            "bytes": one.bytes and one.bytes.value,
        }
        for one in expected
        if one.job.to_run
    ]
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with atomic_file(folder / PLAN) as path:
        path.write_text(json.dumps({"at": now, "asked": dict(asked), "jobs": jobs}) + "\n")


def check_plan(folder: Path, settings: Mapping[str, object]) -> Check | None:
    """Compare a study's last plan with the benchmark files that are newer than the plan.

    For a retried job, the benchmark file holds the seconds of the last attempt.

    Args:
        folder: results/<study>.
        settings: the study's present settings, as JSON types.

    Returns:
        None if the study has no plan.

    Raises:
        UserError: the plan is damaged.
    """
    path = folder / PLAN
    if not path.is_file():
        return None
    try:
        plan = json.loads(path.read_text())
        named = [(job["stage"], job["name"], job["seconds"]) for job in plan["jobs"]]
        planned_for = plan["asked"].get("study", {})
        differing = [key for key in settings if planned_for.get(key) != settings[key]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: not a plan; delete it") from None
    asked = path.stat().st_mtime_ns
    ran: dict[str, list[tuple[float | None, float]]] = {}
    for stage, name, planned in named:
        benchmark = benchmark_of(folder, stage, name)
        if benchmark.is_file() and benchmark.stat().st_mtime_ns > asked:
            taken = benchmark_seconds(benchmark)
            if taken is not None:
                ran.setdefault(stage, []).append((planned, taken))
    stages = [_check(stage, ran[stage]) for stage in STAGES if stage in ran]
    return Check(len(named), stages, differing)


def _check(stage: str, ran: Sequence[tuple[float | None, float]]) -> StageCheck:
    both = [(planned, taken) for planned, taken in ran if planned is not None]
    planned_s = sum(planned for planned, _ in both)
    taken_s = sum(taken for _, taken in both)
    return StageCheck(stage, len(both), planned_s, taken_s, len(ran) - len(both))


def check_lines(check: Check, by_stage: bool = True) -> list[str]:
    """The comparison as text; no lines if none of the plan's jobs has run.

    A plan for other settings names other jobs, so one line says that it is not compared.

    Args:
        check: what `check_plan` returned.
        by_stage: whether to add a line for each stage.
    """
    jobs = sum(stage.jobs for stage in check.stages)
    without_estimate = sum(stage.without_estimate for stage in check.stages)
    if not jobs + without_estimate:
        return []
    if check.differing:
        other = ", ".join(check.differing)
        return [f"plan:    not compared: the last plan was made for other settings ({other})"]
    ran = f"{jobs + without_estimate} of its {check.named} jobs have run"
    if not jobs:
        return [f"plan:    {ran}, none of them with an estimate"]
    planned = sum(stage.planned_s for stage in check.stages)
    taken = sum(stage.taken_s for stage in check.stages)
    ran += f", {without_estimate} without an estimate" if without_estimate else ""
    lines = [f"plan:    {_beside(planned, taken, 0)}; {ran}"]
    for stage in check.stages if by_stage and len(check.stages) > 1 else ():
        if stage.jobs:
            sums = _beside(stage.planned_s, stage.taken_s, 1)
            lines.append(f"         {stage.stage:<13}{stage.jobs:>6} jobs: {sums}")
    return lines


def _beside(planned: float, taken: float, digits: int) -> str:
    """The planned and the taken seconds as text, and their difference in percent of the plan."""
    text = f"planned {planned:,.{digits}f} s, took {taken:,.{digits}f} s"
    return text + (f" ({round(100 * (taken / planned - 1)):+d} %)" if planned else "")
