"""The last lines of a run: the finding and its page, or what each failed job said."""

import re
from pathlib import Path

from hgrpo.workflow.telling_line import telling_line

# Snakemake's log names each failed rule and, some lines later, the job's log file.
_FAILED = re.compile(r"^Error in (?:rule|group) ([\w-]+)", re.MULTILINE)
_LOG = re.compile(r"^ +log: (\S+?)(?:,| \(|$)", re.MULTILINE)


def failure_lines(snakemake_log: str) -> list[str]:
    """For each failed job: its rule and the line that best explains the failure, then its log.

    Args:
        snakemake_log: text of the log of a run of snakemake. A job that was retried counts once.
    """
    failed = {}
    starts = [*_FAILED.finditer(snakemake_log)]
    for index, match in enumerate(starts):
        following = starts[index + 1 : index + 2]
        end = following[0].start() if following else len(snakemake_log)
        named = _LOG.search(snakemake_log, match.end(), end)
        path = Path(named.group(1)) if named else None
        text = path.read_text(errors="replace") if path and path.is_file() else ""
        said = telling_line(text).removeprefix("error: ") or "it ended without a message"
        failed[path or match.start()] = f"error: {match.group(1)}: {said}"
        if path:
            failed[path] += f"\n       (log: {path})"
    return list(failed.values())


def finding(results: Path) -> str:
    """The report's headline and path, which its job printed last; "" without a report."""
    log = results / "logs" / "report" / "report.log"
    lines = log.read_text().splitlines() if log.is_file() else []
    return lines[-1] if lines and (results / "report" / "report.html").is_file() else ""
