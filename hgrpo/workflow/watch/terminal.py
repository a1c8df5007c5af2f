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
from hgrpo.store.plan import Planned
from hgrpo.workflow.watch.screen import lines
from hgrpo.workflow.watch.status import JobStatus, State, job_statuses

_EVERY_S = 20.0


def show_progress(jobs: Sequence[Planned], every_s: float = _EVERY_S) -> None:
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


def _show(jobs: Sequence[Planned], every_s: float, began: float, ends: Event) -> None:
    before: list[str] = []
    warned: set[str] = set()
    while not ends.wait(every_s):
        statuses = job_statuses(jobs)
        # Snakemake itself reports failures.
        now = lines(status for status in statuses if status.state is State.RUNNING and status.share)
        for line in now:
            if line not in before:
                print(line, file=sys.stderr, flush=True)
        before = now
        done = [s for s in statuses if s.state is State.DONE and s.progress]
        made = [status for status in done if status.progress.started >= began]
        # A summary of an earlier version may lack a number; the lines of progress go on without it.
        with contextlib.suppress(KeyError, ValueError, OSError):
            for kind, caution in cautions(made, jobs).items():
                if kind not in warned:  # numbers may change while more rounds end
                    print(f"caution: {caution}", file=sys.stderr, flush=True)
                    warned.add(kind)


def cautions(made: Sequence[JobStatus], jobs: Sequence[Planned]) -> dict[str, str]:
    """Kind -> text, of the cautions about the jobs `made` by a run of `jobs`.

    Jobs write their own; that about the SFT policy compares its evaluation with the expert's.
    """
    texts = [text for status in made for text in status.progress.cautions]
    expert, sft = _summary(jobs, "expert"), _summary([status.job for status in made], "evaluate")
    if expert and sft:
        theirs = expert["success"]["all"]
        mine = tuple(sft[name].get("test T=0", 1.0) for name in ("success", "mean_return"))
        texts.append(far_from_expert(mine, (theirs["at_turn_cap"], theirs["score"])))
    return {text.split(":")[0]: text for text in filter(None, texts)}


def _summary(jobs: Iterable[Planned], stage: str) -> dict:
    """The first summary of a stage before round 1; empty if there is none."""
    paths = [Path(p.folder, "summary.json") for p in jobs if (p.stage, p.job.round) == (stage, 0)]
    return next(
        (json.loads(path.read_text(encoding="utf-8") or "{}") for path in paths if path.is_file()),
        {},
    )
