"""The monitor's screen: totals with the work left, a row for each stage, a line for each job."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tabulate import tabulate

from hgrpo.store.plan import Plan
from hgrpo.study.study import Study
from hgrpo.workflow.planning.estimates import CEILING, OWN, REFERENCE, Estimates
from hgrpo.workflow.watch.status import JobStatus, State, doing, duration


def work_left(study: Study, statuses: Iterable[JobStatus]) -> tuple[float, str]:
    """Seconds of the unfinished jobs, one after the other, and how sure they are.

    Returns:
        Seconds, and "at most " if a time limit stands for some job, "about " if reference rates do,
        or "".
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
    """The whole screen of a study of this name; `work` is from `work_left`."""
    counts: dict[str, Counter] = {}
    for status in jobs:
        counts.setdefault(status.job.stage, Counter())[status.state] += 1
    rows = [[stage, *(of[state] or "" for state in State)] for stage, of in counts.items()]
    stages = tabulate(rows, ["stage", *State], "plain", numalign="right")
    return "\n".join([_totals(name, jobs, work), "", stages, "", *lines(jobs)])


def lines(statuses: Iterable[JobStatus]) -> list[str]:
    """A line for each job that runs or has failed."""
    return [f"{status.job.name}: {doing(status)}" for status in statuses if status.begun]


def _totals(name: str, jobs: Sequence[JobStatus], work: tuple[float, str]) -> str:
    states = Counter(status.state for status in jobs)
    text = f"{name}: {states[State.DONE]} of {len(jobs)} jobs done"
    if states[State.DONE] == len(jobs):
        return text
    (seconds, known), running = work, states[State.RUNNING]
    text += f"\n{known}{duration(seconds)} of work left; "
    if running > 1:
        return text + f"with {running} jobs at a time, {known}{duration(seconds / running)}"
    return text + ("1 job is running" if running else "nothing is running")
