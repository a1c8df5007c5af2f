"""Forecast the time, cost and disk space of a run, in tables by stage and by arm."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tabulate import tabulate
from tqdm import tqdm

from hgrpo.stages.order import resources_key
from hgrpo.store.plan import SHARED, STORE, Plan, Planned, flat
from hgrpo.study.resources import Resources, StageResources
from hgrpo.workflow.planning.estimates import (
    CEILING,
    OTHER_ARMS,
    OWN,
    REFERENCE,
    Estimate,
    Estimates,
)
from hgrpo.workflow.planning.profile import PRICES, Prices, Profile

# The first character marks the affected numbers in a table.
_FOOTNOTES = {
    OTHER_ARMS: "+ partly based on past jobs of other arms in this study",
    REFERENCE: "* partly based on rates of a reference machine",
    CEILING: "< upper bound without retries, partly from time limits, `resources.<stage>.runtime`",
}


@dataclass(frozen=True)
class Forecast:
    """A job with its estimated duration and output size.

    Attributes:
        to_run: whether a run would start the job.
        seconds, bytes: estimates of the job's duration and output size.
        needs: the job's cores and GPUs.
    """

    job: Planned
    to_run: bool
    seconds: Estimate
    bytes: Estimate
    needs: StageResources


def needs(resources: Resources, stage: str, cores: int | None = None) -> StageResources:
    """Resources of a stage's jobs. Unless `cores` is None, a job gets at most `cores` threads."""
    resource = resources.of(resources_key(stage))
    if cores is None or resource.threads <= cores:
        return resource
    return resource.model_copy(update={"threads": cores})


def forecasts(
    plan: Plan,
    estimates: Estimates,
    cores: int | None = None,
    to_run: Iterable[Planned] | None = None,
) -> list[Forecast]:
    """A forecast for each job of a study.

    Args:
        cores: maximum number of threads of a job; None on a cluster.
        to_run: the jobs that a run starts; by default all unfinished jobs required by the report.
    """
    starts = {*(plan.to_run() if to_run is None else to_run)}
    return [
        Forecast(
            job,
            job in starts,
            estimates.seconds(job.stage, job.arm),
            estimates.bytes(job.stage, job.arm),
            needs(plan.study.config.resources, job.stage, cores),
        )
        for job in dict.fromkeys([*plan.jobs(), *starts])
    ]


def source_of(expected: Iterable[Forecast]) -> int:
    """The least reliable source among the estimates for the jobs that will run."""
    to_run = [one for one in expected if one.to_run]
    return max((each.source for one in to_run for each in (one.seconds, one.bytes)), default=OWN)


def wall_minutes(expected: Iterable[Forecast], profile: Profile) -> float:
    """Estimated wall-clock minutes of the remaining jobs.

    Shared stages run one by one, before and after the training runs. The training runs take the
    maximum of their critical path and their total work per core (on a cluster: per job slot).
    """
    to_run = [one for one in expected if one.to_run]
    shared = sum(one.seconds.value for one in to_run if one.job.arm == SHARED)
    # Maps a job's key to the seconds from the start of the first round to the end of the job.
    ends: dict[str, float] = defaultdict(float)
    work = 0.0
    runs = (one for one in to_run if one.job.arm != SHARED)
    for one in sorted(runs, key=lambda one: one.job.job.round):
        inputs = [path.removeprefix(f"{STORE}/") for path in flat(one.job.inputs)]
        before = max((ends[path.partition("/")[0]] for path in inputs), default=0.0)
        ends[one.job.key] = before + one.seconds.value
        work += one.seconds.value * (one.needs.threads if profile.cores else 1)
    slots = profile.cores or profile.jobs or len(ends) or 1
    return (shared + max(work / slots, *ends.values(), 0.0)) / 60


def grouped(
    expected: Sequence[Forecast], label: str, order: Iterable[str]
) -> dict[str, list[Forecast]]:
    """Map each value in `order` to the forecasts of jobs whose attribute `label` is this value."""
    of = defaultdict(list)
    for one in expected:
        of[getattr(one.job, label)].append(one)
    return {name: of[name] for name in order if name in of}


def table(label: str, rows: Mapping[str, Sequence[Forecast]], prices: Prices | None) -> list[str]:
    """Lines of a table with a row for each group of jobs.

    Args:
        label: heading of the first column.
        rows: maps the name of each group to the forecasts of its jobs.
        prices: prices of resources. If None, the table has no money column.
    """
    cells = []
    for name, expected in rows.items():
        to_run = [one for one in expected if one.to_run]
        columns = {label: name, "jobs": len(expected), "cached": len(expected) - len(to_run)}
        columns["to run"] = len(to_run)
        seconds = sum(one.seconds.value for one in to_run)
        columns["s each"] = f"{seconds / len(to_run):,.1f}" if to_run else "-"
        columns["core-h"] = _hours(sum(one.seconds.value * one.needs.threads for one in to_run))
        columns["GPU-h"] = _hours(sum(one.seconds.value * one.needs.gpu for one in to_run))
        if prices:
            money = sum(prices.of_job(one.seconds.value, one.needs) for one in to_run)
            columns[prices.currency] = f"{money:,.2f}"
        columns["disk"] = tqdm.format_sizeof(sum(one.bytes.value for one in to_run), "B")
        # The footnote mark is in its own column, so that the numbers stay aligned.
        cells.append(columns | {"": _FOOTNOTES.get(source_of(expected), "")[:1]})
    align = ["left", *["right"] * (len(cells[0]) - 2), "left"] if cells else None
    text = tabulate(cells, "keys", "plain", colalign=align, disable_numparse=True)
    return [line.rstrip() for line in text.splitlines()]


def footnotes(rows: Mapping[str, Sequence[Forecast]]) -> list[str]:
    """Explanations of the marks in a table."""
    return [_FOOTNOTES[source] for source in sorted({*map(source_of, rows.values())} - {OWN})]


def wall_line(expected: Sequence[Forecast], profile: Profile) -> str:
    """A line with the number of jobs to run and the result of `wall_minutes`."""
    to_run = sum(one.to_run for one in expected)
    if not to_run:
        return "nothing to run"
    where = f"on {profile.cores} cores"
    if profile.cores is None:
        where = f"with {profile.jobs or 'any number'} at a time, without queueing time"
    known = "at most" if source_of(expected) == CEILING else "about"
    minutes = wall_minutes(expected, profile)
    duration = f"{minutes:.1f} minutes" if minutes < 120 else f"{minutes / 60:,.1f} hours"
    return f"{to_run} jobs to run, {known} {duration} {where}"


def price_lines(expected: Iterable[Forecast], profile: Profile, judges: bool) -> list[str]:
    """Notes on prices: missing or example prices, the cost of disk, and paid judges."""
    prices, path = profile.prices, profile.path / PRICES
    if prices is None:
        return [f"no costs shown: {path} does not exist (see profiles/slurm for an example)"]
    lines = []
    if prices.example:
        lines.append(f"the prices in {path} are examples; enter your own and remove `example`")
    written = sum(one.bytes.value for one in expected if one.to_run)
    month = written / 1e9 * prices.disk_gb_month
    if month >= 0.005:
        lines.append(f"disk: {month:,.2f} {prices.currency} per month, not included above")
    if judges:
        lines.append(f"judge costs are not included in the {prices.currency} above")
    return lines


def _hours(seconds: float) -> str:
    value = seconds / 3600
    return format(value, ".4f" if 0 < value < 1 else ",.2f" if value else ".0f")
