"""Work that the jobs of a study have left, from estimates and from their progress bars."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hgrpo.study.study import Study
from hgrpo.workflow.planning.estimates import CEILING, OWN, REFERENCE, Estimates
from hgrpo.workflow.planning.jobs import SHARED
from hgrpo.workflow.watch.status import JobStatus, State


@dataclass(frozen=True)
class Work:
    """Work that is left.

    Attributes:
        seconds: seconds that the unfinished jobs take, one after the other.
        known: "at most" if a time limit stands for some job, "about" if reference rates do, or "".
    """

    seconds: float
    known: str


def work_left(study: Study, results: Path, statuses: Iterable[JobStatus]) -> Work:
    """The work that the unfinished jobs have left."""
    estimates = Estimates(study, results)
    seconds, sources = 0.0, {OWN}
    for status in statuses:
        if status.state is State.DONE:
            continue
        if status.left_s is not None:
            seconds += status.left_s
            continue
        job = estimates.seconds(status.job.stage, status.job.method or SHARED)
        sources.add(job.source)
        seconds += (1 - status.share) * job.value
    known = {REFERENCE: "about", CEILING: "at most"}.get(max(sources), "")
    return Work(seconds, known)
