"""Progress of long jobs in the terminal of the run, since their own output goes to their logs."""

import atexit
import contextlib
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Event, Thread

from hgrpo.evaluation.cautions import far_from_expert
from hgrpo.workflow.watch.jobs import StudyJob
from hgrpo.workflow.watch.status import JobStatus, State, doing, job_statuses

_EVERY_S = 20.0


def show_progress(jobs: Sequence[StudyJob], every_s: float = _EVERY_S) -> None:
    """Print a line for each running job, and new cautions, every `every_s` seconds until the end.

    The lines are plain, because Snakemake writes to the same terminal.
    """
    ends = Event()
    thread = Thread(target=_show, args=(jobs, every_s, time.time(), ends), daemon=True)
    thread.start()

    def stop() -> None:
        ends.set()
        thread.join(1)

    # A thread that printed while Python ends could crash it.
    atexit.register(stop)


def _show(jobs: Sequence[StudyJob], every_s: float, began: float, ends: Event) -> None:
    before: list[str] = []
    warned: set[str] = set()
    while not ends.wait(every_s):
        statuses = job_statuses(jobs)
        lines = progress_lines(statuses)
        for line in lines:
            if line not in before:
                print(line, file=sys.stderr, flush=True)
        before = lines
        made = [s for s in statuses if s.state is State.DONE and s.progress]
        made = [s for s in made if s.progress.started >= began]
        # A summary of an earlier version may lack a number; the lines of progress go on without it.
        with contextlib.suppress(KeyError, ValueError, OSError):
            for kind, caution in cautions(made, jobs).items():
                if kind not in warned:  # numbers may change while more rounds end
                    print(f"caution: {caution}", file=sys.stderr, flush=True)
                    warned.add(kind)


def progress_lines(statuses: Iterable[JobStatus]) -> list[str]:
    """A line for each running job whose bar has moved."""
    return [
        f"{status.job.name}: {doing(status)}"
        for status in statuses
        if status.state is State.RUNNING and status.share
    ]


def cautions(made: Sequence[JobStatus], jobs: Sequence[StudyJob]) -> dict[str, str]:
    """Kind -> text, of the cautions that ended jobs give reason for.

    Jobs write their own; that about the SFT policy compares its evaluation with the expert's.

    Args:
        made: jobs that this run has finished.
        jobs: all jobs of the run.
    """
    texts = [text for status in made if status.progress for text in status.progress.cautions]
    evaluated = [each.job for each in made if each.job.stage == "evaluate" and not each.job.round]
    expert = _summaries(each for each in jobs if each.stage == "expert")
    for sft in _summaries(evaluated)[:1] if expert else []:
        theirs = expert[0]["success"]["all"]
        mine = tuple(sft[name].get("test T=0", 1.0) for name in ("success", "mean_return"))
        texts.append(far_from_expert(mine, (theirs["at_turn_cap"], theirs["score"])))
    return {text.split(":")[0]: text for text in filter(None, texts)}


def _summaries(jobs: Iterable[StudyJob]) -> list[dict]:
    """The summaries that jobs have written."""
    paths = [Path(path) for job in jobs for path in job.outputs if path.endswith("/summary.json")]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]
