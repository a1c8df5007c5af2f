"""The state of every job of a study, from its files and the progress that it writes."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hgrpo.config.canonical import SUMMARY, made_with
from hgrpo.progress import FINISHED, INTERRUPTED, Progress, read_progress
from hgrpo.workflow.watch.jobs import StudyJob

# A job writes every few seconds, but writes nothing while it updates its policy.
_SILENT_S = 120.0
KILLED = "it ended without a message, as a killed job does"


class State(StrEnum):
    """What a job does."""

    DONE = "done"
    RUNNING = "running"
    FAILED = "failed"  # with an error, interrupted or killed
    WAITING = "waiting"  # for other jobs, or for a core


@dataclass(frozen=True)
class JobStatus:
    """A job, its state, and its progress if this run or an earlier one began it."""

    job: StudyJob
    state: State
    progress: Progress | None = None

    @property
    def share(self) -> float:
        """Finished share of the job, from 0 to 1."""
        if self.state is State.DONE:
            return 1.0
        return self.progress.share if self.progress and self.begun else 0.0

    @property
    def begun(self) -> bool:
        """Whether the job has begun and not ended well."""
        return self.state in (State.RUNNING, State.FAILED)

    @property
    def silent_s(self) -> float:
        """Seconds since the job last wrote its progress."""
        return max(0.0, time.time() - self.progress.written) if self.progress else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds left of a running job; None if unknown."""
        left = self.progress.left_s if self.progress and self.state is State.RUNNING else None
        return None if left is None else max(0.0, left - self.silent_s)


def job_statuses(jobs: Iterable[StudyJob]) -> list[JobStatus]:
    """The state of every job; one whose inputs are not done is not done either."""
    statuses = [_status(job) for job in jobs]
    while True:
        missing = {p for each in statuses if each.state is not State.DONE for p in each.job.outputs}
        late = [k for k, each in enumerate(statuses) if each.state is State.DONE]
        late = [k for k in late if missing.intersection(statuses[k].job.inputs)]
        if not late:
            return statuses
        for k in late:
            statuses[k] = JobStatus(statuses[k].job, State.WAITING)


def _status(job: StudyJob) -> JobStatus:
    progress, ready = read_progress(job.log), _newest(job.inputs)
    made = [made_with(Path(path), job.settings) for path in job.outputs if SUMMARY in path]
    if all(made) and _newest(job.outputs) is not None:
        return JobStatus(job, State.DONE, progress)
    # Progress that is older than an input is that of an earlier run.
    if ready is None or progress is None or progress.written < ready or progress.ended == FINISHED:
        return JobStatus(job, State.WAITING)
    return JobStatus(job, State.RUNNING if progress.lives() else State.FAILED, progress)


def is_over(statuses: Sequence[JobStatus]) -> bool:
    """Whether every job is done, and the report is newer than its inputs and has ended.

    The ages of copied files mean nothing: without progress for two minutes, a study is over, too.
    """
    if any(status.state is not State.DONE for status in statuses):
        return False
    (report,) = (status for status in statuses if status.job.stage == "report")
    read, made = _newest(report.job.inputs), _newest(report.job.outputs)
    silent = all(each.progress is None or each.silent_s > _SILENT_S for each in statuses)
    lives = report.progress is not None and report.progress.lives()
    return silent or (not lives and (read or 0.0) <= (made or 0.0))


def _newest(paths: Iterable[str]) -> float | None:
    """When the newest of the files was written; None if one is missing."""
    try:
        return max((os.stat(path).st_mtime for path in paths), default=0.0)
    except FileNotFoundError:
        return None


def doing(status: JobStatus) -> str:
    """The state of a job as text, such as `running, step 7/20, loss=0.5, 2 min left`."""
    progress, ago = status.progress, duration(status.silent_s)
    if not status.begun or progress is None:
        return str(status.state)
    if status.state is State.FAILED:
        if progress.ended == INTERRUPTED:
            return f"interrupted {ago} ago"
        return f"failed {ago} ago: {progress.ended.removeprefix('error: ') or KILLED}"
    parts = ["running"]
    if status.silent_s > _SILENT_S:
        parts = [f"running, last heard {ago} ago"]
    if progress.unit:
        total = f"/{progress.total:g}" if progress.total else ""
        parts.append(f"{progress.unit} {progress.done:g}{total}")
    parts += [progress.postfix] if progress.postfix else []
    parts += [f"{duration(status.left_s)} left"] if status.left_s is not None else []
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as text, such as `45 s`, `12 min` or `3 h 05 min`."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
