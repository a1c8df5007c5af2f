"""Progress of a study: the monitor's screen, and the progress lines of a run."""

import atexit
import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Event, Thread

from tabulate import tabulate

from hgrpo.evaluation.cautions import far_from_expert
from hgrpo.progress import FINISHED, INTERRUPTED, Progress, read_progress
from hgrpo.store.plan import Plan, Planned
from hgrpo.study.study import Study
from hgrpo.workflow.planning.estimates import CEILING, OWN, REFERENCE, Estimates

_EVERY_S = 20.0
# A job writes its progress every few seconds, except during an update of its policy.
_SILENT_S = 120.0
KILLED = "ended without a message; probably killed"


class State(StrEnum):
    """State of a job."""

    DONE = "done"
    RUNNING = "running"
    FAILED = "failed"  # ended with an error, interrupted or killed
    WAITING = "waiting"  # for other jobs, or for a core


@dataclass(frozen=True)
class JobStatus:
    """A job, its state, and its progress if it has been started."""

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
        """Whether the job is running or has failed."""
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


def status_of(job: Planned) -> JobStatus:
    """The state of a job."""
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


def work_left(study: Study, statuses: Iterable[JobStatus]) -> tuple[float, str]:
    """Estimated seconds of all unfinished jobs, and a prefix to print before this number.

    The prefix is "at most " if a time limit is used, else "about " if a reference rate is used.
    """
    estimates = Estimates(Plan(study))
    seconds, sources = 0.0, {OWN}
    for status in statuses:
        if status.left_s is not None:
            seconds += status.left_s
        elif status.state is not State.DONE:
            job = estimates.seconds(status.job.stage, status.job.arm)
            sources.add(job.source)
            seconds += (1 - status.share) * job.value
    return seconds, {REFERENCE: "about ", CEILING: "at most "}.get(max(sources), "")


def screen(name: str, jobs: Sequence[JobStatus], work: tuple[float, str]) -> str:
    """The text that the monitor shows for a study; `work` is the result of `work_left`."""
    counts: dict[str, Counter] = {}
    for status in jobs:
        counts.setdefault(status.job.stage, Counter())[status.state] += 1
    rows = [[stage, *(of[state] or "" for state in State)] for stage, of in counts.items()]
    stages = tabulate(rows, ["stage", *State], "plain", numalign="right")
    return "\n".join([_totals(name, jobs, work), "", stages, "", *lines(jobs)])


def lines(statuses: Iterable[JobStatus]) -> list[str]:
    """A line for each running or failed job."""
    return [f"{status.job.name}: {doing(status)}" for status in statuses if status.begun]


def _totals(name: str, jobs: Sequence[JobStatus], work: tuple[float, str]) -> str:
    states = Counter(status.state for status in jobs)
    text = f"{name}: {states[State.DONE]} of {len(jobs)} jobs done"
    if states[State.DONE] == len(jobs):
        return text
    (seconds, known), running = work, states[State.RUNNING]
    text += f"\n{known}{duration(seconds)} of work left; "
    if running > 1:
        return text + f"with {running} jobs in parallel, {known}{duration(seconds / running)}"
    return text + ("1 job is running" if running else "nothing is running")


def show_progress(jobs: Sequence[Planned], every_s: float = _EVERY_S) -> None:
    """Print the state of the running jobs and any new warnings every `every_s` seconds.

    The lines are plain text, because Snakemake writes to the same terminal.
    """
    ends = Event()
    thread = Thread(target=_show, args=(jobs, every_s, time.time(), ends), daemon=True)
    thread.start()

    def stop() -> None:
        ends.set()
        thread.join(1)

    # Stop the thread before exit, because printing during shutdown can crash Python.
    atexit.register(stop)


def _show(jobs: Sequence[Planned], every_s: float, began: float, ends: Event) -> None:
    before: list[str] = []
    warned: set[str] = set()
    while not ends.wait(every_s):
        statuses = [*map(status_of, jobs)]
        # Failures are omitted because Snakemake reports them.
        now = lines(status for status in statuses if status.state is State.RUNNING and status.share)
        for line in now:
            if line not in before:
                print(line, file=sys.stderr, flush=True)
        before = now
        done = [s for s in statuses if s.state is State.DONE and s.progress]
        made = [status for status in done if status.progress.started >= began]
        # Summaries from earlier versions of hgrpo may lack a number.
        with contextlib.suppress(KeyError, ValueError, OSError):
            for kind, caution in cautions(made, jobs).items():
                if kind not in warned:  # print each kind only once, even if its numbers change
                    print(f"caution: {caution}", file=sys.stderr, flush=True)
                    warned.add(kind)


def cautions(made: Sequence[JobStatus], jobs: Sequence[Planned]) -> dict[str, str]:
    """Warnings about the finished jobs `made`, by kind; `jobs` are all jobs of the run.

    Most warnings come from the jobs. One is added if the SFT policy is far from the expert.
    """
    texts = [text for status in made for text in status.progress.cautions]
    expert, sft = _summary(jobs, "expert"), _summary([status.job for status in made], "evaluate")
    if expert and sft:
        theirs = expert["success"]["all"]
        mine = tuple(sft[name].get("test T=0", 1.0) for name in ("success", "mean_return"))
        texts.append(far_from_expert(mine, (theirs["at_turn_cap"], theirs["score"])))
    return {text.split(":")[0]: text for text in filter(None, texts)}


def _summary(jobs: Iterable[Planned], stage: str) -> dict:
    """The first existing summary.json of a stage at round 0, or an empty mapping."""
    paths = [Path(p.folder, "summary.json") for p in jobs if (p.stage, p.job.round) == (stage, 0)]
    return next((json.loads(path.read_bytes() or b"{}") for path in paths if path.is_file()), {})
