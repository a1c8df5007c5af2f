"""Progress of long jobs in the terminal of the run, since their own output goes to their logs."""

import atexit
import sys
import threading
from collections.abc import Iterable, Sequence

from hgrpo.workflow.watch.jobs import StudyJob
from hgrpo.workflow.watch.status import JobStatus, State, job_statuses
from hgrpo.workflow.watch.words import doing

_EVERY_S = 20.0


def show_progress(jobs: Sequence[StudyJob], every_s: float = _EVERY_S) -> None:
    """Print a line for each running job every `every_s` seconds, until this process ends."""
    ends = threading.Event()
    thread = threading.Thread(target=_show, args=(jobs, every_s, ends), daemon=True)
    thread.start()

    def stop() -> None:
        ends.set()
        thread.join(1)

    # A thread that printed while Python ends could crash it.
    atexit.register(stop)


def _show(jobs: Sequence[StudyJob], every_s: float, ends: threading.Event) -> None:
    before: list[str] = []
    while not ends.wait(every_s):
        lines = progress_lines(job_statuses(jobs))
        for line in lines:
            if line not in before:
                print(line, file=sys.stderr, flush=True)
        before = lines


def progress_lines(statuses: Iterable[JobStatus]) -> list[str]:
    """A line for each running job whose bar has moved."""
    return [
        f"{status.job.name}: {doing(status)}"
        for status in statuses
        if status.state is State.RUNNING and status.share
    ]
