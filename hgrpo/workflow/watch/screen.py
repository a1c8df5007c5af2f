"""The monitor's screen: totals with the work left, shared stages, and a row for every run."""

from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from hgrpo.store.plan import Plan
from hgrpo.study.study import Study
from hgrpo.workflow.planning.estimates import CEILING, OWN, REFERENCE, Estimates
from hgrpo.workflow.watch.status import JobStatus, State, doing, duration

_DOES = {"rl_round": "training", "credit_fit": "fit", "evaluate": "evaluation"}
_COLUMNS = ("arm", "seed", "rounds", "newest training step", "evaluation", "now")


def work_left(study: Study, statuses: Iterable[JobStatus]) -> tuple[float, str]:
    """Seconds of the unfinished jobs, one after the other, and how sure they are.

    Returns:
        Seconds, and "at most " if a time limit stands for some job, "about " if reference rates do,
        or "".
    """
    estimates = Estimates(Plan(study))
    seconds, sources = 0.0, {OWN}
    for status in statuses:
        if status.state is State.DONE:
            continue
        if status.left_s is not None:
            seconds += status.left_s
            continue
        job = estimates.seconds(status.job.stage, status.job.arm)
        sources.add(job.source)
        seconds += (1 - status.share) * job.value
    return seconds, {REFERENCE: "about ", CEILING: "at most "}.get(max(sources), "")


def screen(name: str, jobs: Sequence[JobStatus], work: tuple[float, str], height: int) -> Group:
    """The whole screen of a study.

    Args:
        name: of the study.
        jobs: the state of every job.
        work: from `work_left`.
        height: lines of the screen. If the runs do not fit, those at work come first.
    """
    stages = Table.grid(padding=(0, 2, 0, 0))
    of_runs: dict[tuple[str, int], list[JobStatus]] = {}
    for status in jobs:
        if status.job.job.method:
            of_runs.setdefault((status.job.job.method, status.job.job.seed), []).append(status)
        else:
            stages.add_row(status.job.stage, Text(doing(status)), style=_style(status.state))
    rows = list(of_runs.values())
    if len(rows) > height - len(jobs) + sum(map(len, rows)) - 6:
        rows.sort(key=lambda run: not any(status.begun for status in run))
    runs = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in _COLUMNS:
        runs.add_column(column, overflow="fold")
    for run in rows:
        cells = _cells(run)
        runs.add_row(*map(Text, cells), style=_style(cells[-1]))
    return Group(Text(_totals(name, jobs, work)), Text(""), stages, Text(""), runs)


def _cells(run: Sequence[JobStatus]) -> list[str]:
    """The row of a run, an arm and a seed, from the states of its jobs."""
    rounds = [status for status in run if status.job.stage == "rl_round"]
    done = sum(status.state is State.DONE for status in rounds)
    return [
        run[0].job.job.method,
        str(run[0].job.job.seed) if rounds else "all",
        f"{done}/{len(rounds)}" if rounds else "",
        _newest(run, "rl_round"),
        _newest(run, "evaluate"),
        now(run),
    ]


def _newest(run: Iterable[JobStatus], stage: str) -> str:
    """The newest results that jobs of a stage have written with their progress."""
    written = [s.progress.postfix for s in run if s.job.stage == stage and s.progress]
    return next(filter(None, reversed(written)), "")


def now(run: Sequence[JobStatus]) -> str:
    """What a run does now."""
    begun = [status for status in run if status.begun]
    if begun:
        return ", ".join(
            f"{_DOES[status.job.stage]} "
            + (f"{status.share:.0%}" if status.state is State.RUNNING else doing(status))
            for status in begun
        )
    done = all(status.state is State.DONE for status in run)
    return str(State.DONE if done else State.WAITING)


def _totals(name: str, jobs: Sequence[JobStatus], work: tuple[float, str]) -> str:
    done = [status for status in jobs if status.state is State.DONE]
    text = f"{name}: {len(done)} of {len(jobs)} jobs done"
    if len(done) == len(jobs):
        return text
    seconds, known = work
    running = sum(status.state is State.RUNNING for status in jobs)
    text += f"\n{known}{duration(seconds)} of work left; "
    if running > 1:
        return text + f"with {running} jobs at a time, {known}{duration(seconds / running)}"
    return text + ("1 job is running" if running else "nothing is running")


def _style(state: str) -> str:
    return "dim" if state in (State.DONE, State.WAITING) else ""
