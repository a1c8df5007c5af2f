"""The state of every job of a study, from its files and the progress that it writes."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hgrpo.progress import FINISHED, INTERRUPTED, Progress, read_progress
from hgrpo.store.plan import Planned

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

    job: Planned
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


def job_statuses(jobs: Iterable[Planned]) -> list[JobStatus]:
    """The state of every job."""
    return [*map(_status, jobs)]


def _status(job: Planned) -> JobStatus:
    progress = read_progress(Path(job.log))
    if job.made:
        return JobStatus(job, State.DONE, progress)
    if progress is None or progress.ended == FINISHED:
        return JobStatus(job, State.WAITING)
    return JobStatus(job, State.RUNNING if progress.lives() else State.FAILED, progress)


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
