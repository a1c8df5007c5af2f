"""What each job of a study does now, read from the files and the log that it writes anyway.

Jobs may run on other machines, so this module does not look for processes. A killed job leaves an
unfinished log that nobody writes to. After two minutes without a write, the job is `SILENT`.
"""

import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hgrpo.config.canonical import SUMMARY, made_with
from hgrpo.learning.scratch import step_folders
from hgrpo.workflow.watch.jobs import StudyJob

# A bar of tqdm in a log, such as "sft:  35%|###  | 70/200 [01:10<02:10,  1.00s/step, loss=0.5]".
_BAR = re.compile(
    r"(?P<percent>\d+)%\|[^|]*\| (?P<count>\S+/\S+) "
    r"\[[\d:]+<(?P<left>[\d:]+|\?)(?:, +(?:[\d.]+s/(?P<slow>\w+)|[\d.?]+(?P<fast>[a-z]\w*)/s))?"
    r"(?:[^\]\r\n]*\btest=(?P<test>[\d.]+))?"
)
_ENDED = re.compile(r"(interrupted:|error:|[A-Za-z_][\w.]*(?:Error|Exception):)")
_BYTES = 4096
# A job writes its progress bar every five seconds. A round writes none while it updates its policy.
_SILENT_S = 120.0
# The report's job prints its finding after it has written its files.
_ENDS_S = 3.0


@dataclass(frozen=True)
class LogTail:
    """What the end of a log says.

    Attributes:
        written: when the log was last written to, in seconds since the epoch.
        share: how much of the job is done, from 0 to 1; None without a bar.
        count: steps done and steps in all, such as `step 70/200`; "" without a bar.
        left_s: seconds left when the bar was last written; None if unknown.
        test: greedy success on the test panel, if the job is an evaluation that has played it; None
            otherwise.
        ended: the last line, if the job ended with an error or was interrupted; otherwise "".
    """

    written: float
    share: float | None = None
    count: str = ""
    left_s: float | None = None
    test: float | None = None
    ended: str = ""


def read_tail(path: Path) -> LogTail | None:
    """The end of a log; None if there is no such file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _BYTES))
            text = file.read().decode(errors="replace")
        written = path.stat().st_mtime
    except FileNotFoundError:
        return None
    lines = [line.strip() for line in re.split(r"[\r\n]", text) if line.strip()]
    ended = lines[-1] if lines and _ENDED.match(lines[-1]) else ""
    bars = [*_BAR.finditer(text)]
    if not bars:
        return LogTail(written, ended=ended)
    bar = bars[-1]
    unit = bar["slow"] or bar["fast"]
    count = f"{unit} {bar['count']}" if unit else bar["count"]
    test = float(bar["test"]) if bar["test"] else None
    return LogTail(written, int(bar["percent"]) / 100, count, _seconds(bar["left"]), test, ended)


def _seconds(clock: str) -> float | None:
    """Seconds in `12:05` or `1:02:03`; None for `?`."""
    if clock == "?":
        return None
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return float(seconds)


class State(StrEnum):
    """What a job does."""

    DONE = "done"
    RUNNING = "running"
    SILENT = "silent"  # it began, and its log has been silent for two minutes
    STOPPED = "stopped"  # it ended with an error, or was interrupted
    QUEUED = "queued"  # its inputs are there, and it waits for a core
    NOT_STARTED = "not started"  # it waits for other jobs


@dataclass(frozen=True)
class JobStatus:
    """A job, its state, and the end of its log if it has begun.

    Attributes:
        heard_s: seconds since the job last wrote to its log; None if it has no log.
    """

    job: StudyJob
    state: State
    tail: LogTail | None = None
    heard_s: float | None = None

    @property
    def share(self) -> float:
        """How much of the job is done, from 0 to 1, as far as its progress bar says."""
        if self.state is State.DONE:
            return 1.0
        share = self.tail.share if self.tail and self.begun else None
        return share or 0.0

    @property
    def begun(self) -> bool:
        """Whether the job has begun and not ended well."""
        return self.state in (State.RUNNING, State.SILENT, State.STOPPED)

    @property
    def left_s(self) -> float | None:
        """Seconds left of a running job; None if its bar does not say."""
        if self.state is not State.RUNNING or self.tail is None or self.tail.left_s is None:
            return None
        return max(0.0, self.tail.left_s - (self.heard_s or 0.0))


def job_statuses(jobs: Iterable[StudyJob]) -> list[JobStatus]:
    """The state of every job; one whose inputs are not done is not done either."""
    now = time.time()
    statuses = [_status(job, now) for job in jobs]
    while True:
        missing = {p for each in statuses if each.state is not State.DONE for p in each.job.outputs}
        late = [k for k, each in enumerate(statuses) if each.state is State.DONE]
        late = [k for k in late if missing.intersection(statuses[k].job.inputs)]
        if not late:
            return statuses
        for k in late:
            statuses[k] = JobStatus(statuses[k].job, State.NOT_STARTED)


def _status(job: StudyJob, now: float) -> JobStatus:
    tail = read_tail(job.log)
    heard = max(0.0, now - tail.written) if tail else None
    made = [made_with(Path(path), job.settings) for path in job.outputs if SUMMARY in path]
    if all(made) and all(os.path.exists(path) for path in job.outputs):
        return JobStatus(job, State.DONE, tail, heard)
    ready = _newest(job.inputs)
    if ready is None:
        return JobStatus(job, State.NOT_STARTED)
    # An earlier run wrote the log if it is older than an input.
    if tail is None or heard is None or tail.written < ready:
        return JobStatus(job, State.QUEUED)
    if tail.ended:
        return JobStatus(job, State.STOPPED, tail, heard)
    state = State.SILENT if heard > _SILENT_S else State.RUNNING
    return JobStatus(job, state, tail, heard)


def is_over(statuses: Sequence[JobStatus]) -> bool:
    """Whether every job is done, and the report is newer than its inputs.

    The ages of copied files mean nothing. So if every job is done and no log was written for two
    minutes, the study is over whatever the ages are.
    """
    if any(status.state is not State.DONE for status in statuses):
        return False
    heard = [status.heard_s for status in statuses if status.heard_s is not None]
    if all(seconds > _SILENT_S for seconds in heard):
        return True
    (report,) = (status.job for status in statuses if status.job.stage == "report")
    read, made = _newest(report.inputs), _newest(report.outputs)
    return read is not None and made is not None and read <= made <= time.time() - _ENDS_S


def kept_steps(job: StudyJob) -> int:
    """The number of steps that an unfinished job has saved and need not repeat."""
    if job.scratch is None or not job.scratch.is_dir():
        return 0
    saved = [path for key in job.scratch.iterdir() for path in step_folders(key)]
    return max((int(path.name.removeprefix("step_")) + 1 for path in saved), default=0)


def _newest(paths: Iterable[str]) -> float | None:
    """When the newest of the files was written; None if one is missing."""
    try:
        return max((os.stat(path).st_mtime for path in paths), default=0.0)
    except FileNotFoundError:
        return None


def doing(status: JobStatus) -> str:
    """What a job does, such as `running, step 70/200, 2 min left`."""
    said = [str(status.state)]
    if status.state is State.SILENT:
        said = [f"last heard {duration(status.heard_s or 0.0)} ago"]
    elif status.state is State.STOPPED:
        said = [f"{ended(status)} {duration(status.heard_s or 0.0)} ago"]
    if status.begun and status.tail and status.tail.count:
        said.append(status.tail.count)
    if status.begun and status.tail and status.tail.test is not None:
        said.append(f"test {status.tail.test:.1%}")
    if status.left_s is not None:
        said.append(f"{duration(status.left_s)} left")
    return ", ".join(said)


def ended(status: JobStatus) -> str:
    """How a stopped job ended: `failed` or `interrupted`."""
    said = status.tail.ended if status.tail else ""
    return "interrupted" if said.startswith("interrupted:") else "failed"


def duration(seconds: float) -> str:
    """Seconds as text, such as `45 s`, `12 min` or `3 h 05 min`."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
