"""The last lines of a run: pages and the finding, what each failed job said, what was kept."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from hgrpo.workflow.telling_line import EXCEPTION, telling_line
from hgrpo.workflow.watch.jobs import StudyJob
from hgrpo.workflow.watch.status import State, job_statuses, kept_steps

# Snakemake's log names each failed rule and, some lines later, the job's log file.
_FAILED = re.compile(r"^Error in (?:rule|group) ([\w-]+)", re.MULTILINE)
_LOG = re.compile(r"^ +log: (\S+?)(?:,| \(|$)", re.MULTILINE)

# `make bakeoff` sets this variable, because it prints the finding itself, below the run's seconds.
FINDING_VARIABLE = "HGRPO_FINDING"

# Stages whose last line says what they wrote, and where.
PAGES = ("figures", "viewer", "paper", "credit_agreement", "gradients_page")

_NOTHING_SAID = "it ended without a message, as a killed job does"
# What Snakemake says after Ctrl-C, and after SIGTERM.
_STOPPED = re.compile(
    r"^(Terminating processes on user request|Will exit after finishing currently running jobs)",
    re.MULTILINE,
)


def last_lines(
    snakemake_log: str,
    jobs: Sequence[StudyJob],
    left: Collection[str] = (),
    interrupted: bool = False,
) -> list[str]:
    """The last lines of a run that did not succeed: failed jobs, and what an interrupted run kept.

    Args:
        snakemake_log: text of the log of the run of snakemake.
        jobs: all jobs of the study.
        left: files that the run still had to make; older ones may be there.
        interrupted: whether snakemake got SIGINT, which its log need not show.
    """
    if interrupted or _STOPPED.search(snakemake_log):
        return [*failure_lines(snakemake_log, errors_only=True), kept_line(jobs, left)]
    return failure_lines(snakemake_log)


def kept_line(jobs: Sequence[StudyJob], left: Collection[str] = ()) -> str:
    """What a study keeps after a run was interrupted; `left` as for `last_lines`."""
    to_make = set(left)
    statuses = job_statuses(jobs)
    done = [
        status.state is State.DONE and to_make.isdisjoint(status.job.outputs) for status in statuses
    ]
    kept = [f"{sum(done)} of {len(jobs)} jobs"]
    for status in statuses:
        steps = kept_steps(status.job) if status.state is not State.DONE else 0
        if steps:
            kept.append(f"{steps} step{'s' if steps > 1 else ''} of {status.job.name}")
    return f"interrupted: kept {', '.join(kept)}; the same command goes on from there"


def failure_lines(snakemake_log: str, errors_only: bool = False) -> list[str]:
    """For each failed job: its rule and the line that best explains the failure, then its log.

    Args:
        snakemake_log: text of the log of a run of snakemake. A job that was retried counts once.
        errors_only: leave out jobs whose logs name no error, as those of interrupted jobs.
    """
    failed = {}
    starts = [*_FAILED.finditer(snakemake_log)]
    for index, match in enumerate(starts):
        following = starts[index + 1 : index + 2]
        end = following[0].start() if following else len(snakemake_log)
        named = _LOG.search(snakemake_log, match.end(), end)
        path = Path(named.group(1)) if named else None
        text = path.read_text(errors="replace", encoding="utf-8") if path and path.is_file() else ""
        line = telling_line(text)
        if errors_only and not EXCEPTION.match(line):
            continue
        said = line.removeprefix("error: ") or _NOTHING_SAID
        failed[path or match.start()] = f"error: {match.group(1)}: {said}"
        if path:
            failed[path] += f"\n       (log: {path})"
    return list(failed.values())


def finding(results: Path) -> str:
    """The last line of the report's log: its headline and path; "" without a report."""
    return _said(results, "report") if (results / "report" / "report.html").is_file() else ""


def results_to_say(
    stages: Collection[str], results: Path, environment: Mapping[str, str]
) -> list[str]:
    """What a run of Snakemake says last: where its pages are, then the finding.

    Args:
        stages: the stages that the run needed, also those with nothing to do.
        results: results/<study>.
        environment: environment variables; one says that `make` prints the finding.
    """
    # The report shows the figures, so its line is enough.
    hidden = {"figures"} if "report" in stages else set()
    lines = [_said(results, stage) for stage in PAGES if stage in stages and stage not in hidden]
    if "report" in stages and not environment.get(FINDING_VARIABLE):
        lines.append(finding(results))
    return list(filter(None, lines))


def _said(results: Path, stage: str) -> str:
    """The last line of the log of a stage with one job; "" without a log."""
    log = results / "logs" / stage / f"{stage}.log"
    lines = log.read_text(errors="replace", encoding="utf-8").splitlines() if log.is_file() else []
    return lines[-1] if lines else ""
