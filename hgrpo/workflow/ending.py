"""The last lines of a run: pages and the finding, why jobs failed, and how much is done."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from hgrpo.workflow.telling_line import EXCEPTION, telling_line
from hgrpo.workflow.watch.status import KILLED

# `make bakeoff` sets this variable, because it prints the finding itself, below the run's seconds.
FINDING_VARIABLE = "HGRPO_FINDING"

# Stages whose last line names what they wrote.
PAGES = ("figures", "viewer", "paper", "credit_agreement", "gradients_page")


def failure_lines(
    left: Iterable[tuple[str, Path]], began: float, interrupted: bool = False
) -> list[str]:
    """For each failed job: its rule and the line that best explains the failure, then its log.

    Args:
        left: (rule, log) of the jobs that the run has not finished.
        began: when the run began, in seconds since the epoch; older logs are those of other runs.
        interrupted: leave out jobs whose logs name no error, because they were interrupted too.
    """
    lines = []
    for rule, log in left:
        if not log.is_file() or log.stat().st_mtime < began:
            continue
        line = telling_line(log.read_text(errors="replace", encoding="utf-8"))
        if interrupted and not EXCEPTION.match(line):
            continue
        reason = line.removeprefix("error: ") or KILLED
        lines.append(f"error: {rule}: {reason}\n       (log: {log})")
    return lines


def finding(results: Path) -> str:
    """The last line of the report's log: its headline and path; "" without a report."""
    return _last_line(results, "report") if (results / "report" / "report.html").is_file() else ""


def page_lines(stages: Collection[str], results: Path, environment: Mapping[str, str]) -> list[str]:
    """The last lines of a run that succeeded: its pages, then the finding.

    Args:
        stages: the stages that the run needed, also those with nothing to do.
        results: results/<study>.
        environment: environment variables; `FINDING_VARIABLE` leaves the finding to `make`.
    """
    # The report shows the figures, so its line is enough.
    hidden = {"figures"} if "report" in stages else set()
    lines = [_last_line(results, each) for each in PAGES if each in stages and each not in hidden]
    if "report" in stages and not environment.get(FINDING_VARIABLE):
        lines.append(finding(results))
    return list(filter(None, lines))


def _last_line(results: Path, stage: str) -> str:
    """The last line of the log of a stage with one job; "" without a log."""
    log = results / "logs" / stage / f"{stage}.log"
    lines = log.read_text(errors="replace", encoding="utf-8").splitlines() if log.is_file() else []
    return lines[-1] if lines else ""
