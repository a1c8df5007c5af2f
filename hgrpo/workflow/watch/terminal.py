"""Progress of long jobs in the terminal of the run, since their own output goes to their logs."""

import atexit
import contextlib
import json
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from threading import Event, Thread

from hgrpo.evaluation.cautions import far_from_expert
from hgrpo.workflow.watch.jobs import StudyJob
from hgrpo.workflow.watch.status import JobStatus, State, doing, job_statuses

_EVERY_S = 20.0
Files = Callable[[], Collection[str]]


def show_progress(jobs: Sequence[StudyJob], to_make: Files, every_s: float = _EVERY_S) -> None:
    """Print a line for each of a run's running jobs every `every_s` seconds, until it ends.

    `to_make` returns the files that the run has not made yet; older ones may be there.
    """
    ends = Event()
    thread = Thread(target=_show, args=(jobs, to_make, every_s, ends), daemon=True)
    thread.start()

    def stop() -> None:
        ends.set()
        thread.join(1)

    # A thread that printed while Python ends could crash it.
    atexit.register(stop)


def _show(jobs: Sequence[StudyJob], to_make: Files, every_s: float, ends: Event) -> None:
    before: list[str] = []
    warned: set[str] = set()
    while not ends.wait(every_s):
        left = set(to_make())
        statuses = job_statuses(jobs)
        lines = progress_lines(statuses)
        for line in lines:
            if line not in before:
                print(line, file=sys.stderr, flush=True)
        before = lines
        # Snakemake deletes an older result only when its job begins.
        made = [s.job for s in statuses if s.state is State.DONE and left.isdisjoint(s.job.outputs)]
        # A summary of an earlier version may lack a number; the lines of progress go on without it.
        with contextlib.suppress(KeyError, ValueError, OSError):
            for kind, caution in cautions(made).items():
                if kind not in warned:  # numbers may change while more rounds end
                    print(caution, file=sys.stderr, flush=True)
                    warned.add(kind)


def progress_lines(statuses: Iterable[JobStatus]) -> list[str]:
    """A line for each running job whose bar has moved."""
    return [
        f"{status.job.name}: {doing(status)}"
        for status in statuses
        if status.state is State.RUNNING and status.share
    ]


def cautions(jobs: Sequence[StudyJob]) -> dict[str, str]:
    """Kind -> line, of cautions that ended jobs give reason for.

    That about the SFT policy compares its evaluation with its expert; other stages log their own.
    """
    logs = [job.log for job in jobs if job.stage in ("expert", "rl_round") and job.log.is_file()]
    lines = [x for f in logs for x in f.read_text(encoding="utf-8", errors="replace").splitlines()]
    expert, sft = _summary(jobs, "expert"), _summary(jobs, "evaluate")
    if expert and sft:
        theirs = expert["success"]["all"]
        mine = tuple(sft[name].get("test T=0", 1.0) for name in ("success", "mean_return"))
        caution = far_from_expert(mine, (theirs["at_turn_cap"], theirs["score"]))
        lines.append(f"caution: {caution}" if caution else "")
    return {line.split(":")[1]: line for line in lines if line.startswith("caution: ")}


def _summary(jobs: Sequence[StudyJob], stage: str) -> dict:
    """The first summary of a stage before round 1; empty if there is none."""
    every = [path for job in jobs if (job.stage, job.round) == (stage, 0) for path in job.outputs]
    paths = [Path(path) for path in every if path.endswith("/summary.json")]
    return next(
        (json.loads(path.read_text(encoding="utf-8") or "{}") for path in paths if path.is_file()),
        {},
    )
