"""Accuracy of a plan: the seconds it expected against the seconds its jobs took."""

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hgrpo.atomic import atomic_file
from hgrpo.errors import UserError
from hgrpo.stages.order import STAGES
from hgrpo.workflow.exchange.imports import imported
from hgrpo.workflow.planning.forecast import Forecast
from hgrpo.workflow.planning.jobs import benchmark_of, benchmark_seconds, job_folder, log_of
from hgrpo.workflow.reuse import was_taken

PLAN = "plan.json"


def save_plan(folder: Path, expected: Iterable[Forecast], asked: Mapping[str, object]) -> None:
    """Write the expected seconds and bytes of each job to run into a study's folder.

    Args:
        folder: results/<study>.
        expected: forecasts of the jobs; jobs that will not run are left out.
        asked: the command's arguments, as JSON types. The entry `study` holds the settings that
            `check_lines` will compare.
    """
    jobs = [
        {
            "stage": one.job.stage,
            "name": one.job.name,
            "seconds": one.seconds.value,
            "bytes": one.bytes.value,
        }
        for one in expected
        if one.job.to_run
    ]
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with atomic_file(folder / PLAN) as path:
        text = json.dumps({"at": now, "asked": dict(asked), "jobs": jobs}) + "\n"
        path.write_text(text, encoding="utf-8")


def check_lines(folder: Path, settings: Mapping[str, object], by_stage: bool = True) -> list[str]:
    """Lines that compare planned with actual seconds, for jobs that ran since the last plan.

    A plan that was made for other settings is not compared. Jobs whose results were taken from
    another study are counted, and their seconds are not compared. Jobs whose files were only
    touched or imported have not run. For a retried job, the benchmark file holds the seconds of the
    last attempt.

    Args:
        folder: results/<study>.
        settings: the study's present settings, as JSON types.
        by_stage: whether to add a line for each stage.

    Returns:
        No lines if the study has no plan for these settings, or if none of its jobs has run.

    Raises:
        UserError: the plan is damaged.
    """
    path = folder / PLAN
    if not path.is_file():
        return []
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        jobs = [(job["stage"], job["name"], float(job["seconds"])) for job in plan["jobs"]]
        planned_for = plan["asked"].get("study", {})
        differing = [key for key in settings if planned_for.get(key) != settings[key]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: not a plan; delete it") from None
    done = list(_done(folder, jobs, path.stat().st_mtime_ns))
    ran = [(stage, planned, seconds) for stage, planned, seconds in done if seconds is not None]
    if differing or not done:
        return []
    said = f"{len(ran)} of its {len(jobs)} jobs have run"
    reused = len(done) - len(ran)
    said += f", {reused} were taken from other studies" if reused else ""
    if not ran:
        return [f"plan:    {said}"]
    lines = [f"plan:    {_beside(ran, 0)}; {said}"]
    for stage in STAGES if by_stage and len({stage for stage, *_ in ran}) > 1 else ():
        own = [job for job in ran if job[0] == stage]
        if own:
            lines.append(f"         {stage:<13}{len(own):>6} jobs: {_beside(own, 1)}")
    return lines


def _done(
    folder: Path, jobs: Iterable[tuple[str, str, float]], since: int
) -> Iterator[tuple[str, float, float | None]]:
    """(stage, planned seconds, seconds taken) of each job that ended after `since` (nanoseconds).

    If the results were taken from another study, the seconds taken are None.
    """
    of_others = imported(folder)
    for stage, name, planned in jobs:
        own = job_folder(folder, stage, name)
        benchmark = benchmark_of(folder, stage, name)
        # `snakemake --touch`, as in an import, makes an old benchmark new, but no old log.
        written = (benchmark, log_of(folder, stage, name))
        if not all(_since(file, since) for file in written) or of_others(own):
            continue
        seconds = benchmark_seconds(benchmark)
        if was_taken(own):
            yield stage, planned, None
        elif seconds is not None:
            yield stage, planned, seconds


def _since(path: Path, since: int) -> bool:
    """Whether a file was written after `since` (nanoseconds)."""
    return path.is_file() and path.stat().st_mtime_ns > since


def _beside(jobs: Sequence[tuple[str, float, float]], digits: int) -> str:
    """Sums of planned and taken seconds as text, and their difference in percent of the plan."""
    planned, taken = (sum(job[index] for job in jobs) for index in (1, 2))
    text = f"planned {planned:,.{digits}f} s, took {taken:,.{digits}f} s"
    return text + (f" ({round(100 * (taken / planned - 1)):+d} %)" if planned else "")
