"""The monitor's screen: shared stages, a row for every run, and totals with the work left."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from hgrpo.report.run_status import RunStatus
from hgrpo.study.study import Study
from hgrpo.workflow.planning.estimates import CEILING, OWN, REFERENCE, Estimates
from hgrpo.workflow.planning.jobs import SHARED
from hgrpo.workflow.watch.status import JobStatus, State, doing, duration, ended

_COLUMNS = ("arm", "seed", "round", "step", "reward", "success", "KL", "dead", "test", "now")
# A narrow screen leaves these columns out, one after the other, until a row fits.
_DROPPED = ("KL", "dead", "reward", "step")
_GAP = 2
# Largest width of the column `now`, in characters. Longer texts take several lines.
_NOW = 17
_DOES = {"rl_round": "training", "credit_fit": "fit", "evaluate": "evaluation"}
_TOTALS = {"rl_round": "rounds", "credit_fit": "fits", "evaluate": "evaluations"}
_AFTER_ARMS = ("merge", "figures", "report")


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


@dataclass(frozen=True)
class Seen:
    """What the monitor read at one time.

    Attributes:
        at_once: the largest number of jobs that were seen to run at the same time.
    """

    name: str
    jobs: Sequence[JobStatus]
    runs: Sequence[RunStatus]
    work: Work
    at_once: int


def screen(seen: Seen, width: int, height: int) -> Group:
    """The whole screen.

    If `height` is too small for a row per run, idle runs are counted instead of shown.
    """
    before = [s for s in seen.jobs if not s.job.method and s.job.stage not in _AFTER_ARMS]
    after = [s for s in seen.jobs if s.job.stage in _AFTER_ARMS]
    rows = [(cells(run, own), own) for run in seen.runs if (own := _own(run, seen.jobs))]
    folded = sum("," in row["now"] for row, _ in rows)
    room = max(1, height - len(before) - len(after) - 8 - folded)
    shown, left_out = _fitting(rows, room)
    parts = [Text(_totals(seen)), Text(""), _stages(before), Text(""), _table(shown, width)]
    if left_out:
        parts.append(Text(left_out))
    return Group(*parts, Text(""), _stages(after))


def cells(run: RunStatus, jobs: Sequence[JobStatus]) -> dict[str, str]:
    """The row of a run: column -> text."""
    row = run.row
    # An unfinished evaluation has a newer result than `run.test_success`.
    tested = [status.tail.test for status in jobs if status.begun and status.tail]
    test = next((value for value in reversed(tested) if value is not None), run.test_success)
    return {
        "arm": run.method,
        "seed": str(run.seed) if run.rounds else "all",
        "round": f"{min(run.finished + 1, run.rounds)}/{run.rounds}" if run.rounds else "",
        "step": "" if run.step is None else f"{run.step}/{run.steps}",
        "reward": _shown(row.get("mean_reward"), "{:.3f}"),
        "success": _shown(row.get("success_rate"), "{:.1%}"),
        "KL": _shown(row.get("observed_kl"), "{:.4f}"),
        "dead": _share(row.get("dead_groups"), row.get("n_groups")),
        "test": _shown(test, "{:.1%}"),
        "now": now(jobs),
    }


def now(jobs: Sequence[JobStatus]) -> str:
    """What a run does now, from the states of its jobs."""
    begun = [_begun(status) for status in jobs if status.begun]
    if begun:
        return ", ".join(begun)
    states = {status.state for status in jobs}
    if states == {State.DONE}:
        return "done"
    return str(State.QUEUED if State.QUEUED in states else State.NOT_STARTED)


def _begun(status: JobStatus) -> str:
    said = f"{_DOES[status.job.stage]} {status.share:.0%}"
    if status.state is State.SILENT:
        return f"{said} (last heard {duration(status.heard_s or 0.0)} ago)"
    if status.state is State.STOPPED:
        return f"{said} ({ended(status)} {duration(status.heard_s or 0.0)} ago)"
    return said


def _own(run: RunStatus, jobs: Sequence[JobStatus]) -> list[JobStatus]:
    return [s for s in jobs if (s.job.method, s.job.seed) == (run.method, run.seed)]


def _totals(seen: Seen) -> str:
    done = sum(status.state is State.DONE for status in seen.jobs)
    said = f"{seen.name}: {done} of {len(seen.jobs)} jobs done"
    for stage, name in _TOTALS.items():
        of = [status.state is State.DONE for status in seen.jobs if status.job.stage == stage]
        said += f", {name} {sum(of)}/{len(of)}" if of else ""
    if done == len(seen.jobs):
        return said
    known = f"{seen.work.known} " if seen.work.known else ""
    said += f"\n{known}{duration(seen.work.seconds)} of work left"
    if seen.at_once > 1:
        together = duration(seen.work.seconds / seen.at_once)
        said += f"; with {seen.at_once} jobs at a time, {known}{together}"
    running = any(status.state is State.RUNNING for status in seen.jobs)
    return said if running else f"{said}; nothing is running"


def _stages(statuses: Sequence[JobStatus]) -> Table:
    shown = Table.grid(padding=(0, _GAP, 0, 0))
    for status in statuses:
        shown.add_row(status.job.stage, doing(status), style=_style(doing(status)))
    return shown


def _table(rows: Sequence[dict[str, str]], width: int) -> Table:
    columns = _columns(rows, width)
    shown = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for name in columns:
        words = name in ("arm", "now")
        shown.add_column(
            name, justify="left" if words else "right", no_wrap=name != "now", overflow="fold"
        )
    for row in rows:
        shown.add_row(*(row[name] for name in columns), style=_style(row["now"]))
    return shown


def _columns(rows: Sequence[dict[str, str]], width: int) -> list[str]:
    """The columns that a screen has room for."""
    wide = {name: max(map(cell_len, [name, *(r[name] for r in rows)])) for name in _COLUMNS}
    wide["now"] = min(wide["now"], _NOW)
    columns = list(_COLUMNS)
    for name in _DROPPED:
        if sum(wide[each] + _GAP for each in columns) > width:
            columns.remove(name)
    return columns


def _fitting(
    rows: Sequence[tuple[dict[str, str], list[JobStatus]]], room: int
) -> tuple[list[dict[str, str]], str]:
    """The rows that fit, and a line that counts the rest. Active runs are kept first."""
    if len(rows) <= room:
        return [row for row, _ in rows], ""
    order = sorted(rows, key=lambda row: not any(status.begun for status in row[1]))
    kept = [row for row, _ in order[:room]]
    others = [row["now"] for row, _ in order[room:]]
    counts = [f"{others.count(word)} {word}" for word in dict.fromkeys(others)]
    return [row for row, _ in rows if row in kept], f"and more runs: {', '.join(counts)}"


def _style(said: str) -> str:
    return "dim" if said in (State.DONE, State.NOT_STARTED) else ""


def _share(part: float | None, whole: float | None) -> str:
    return "" if part is None or whole is None else f"{part}/{whole}"


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
