"""Time, cost and disk space of the jobs to run, summed by stage or by arm, and as text."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from hgrpo.stages.order import resources_key
from hgrpo.study.resources import Resources, StageResources
from hgrpo.study.study import Study
from hgrpo.workflow.planning.estimates import (
    CEILING,
    OTHER_ARMS,
    OWN,
    REFERENCE,
    Estimate,
    Estimates,
)
from hgrpo.workflow.planning.jobs import SHARED, Job
from hgrpo.workflow.planning.profile import PRICES, Prices, Profile

_MARKS = {OWN: "", OTHER_ARMS: "+", REFERENCE: "*", CEILING: "<"}
_FOOTNOTES = {
    OTHER_ARMS: "+ in part from other arms of this study, or from a colleague's machine",
    REFERENCE: "* in part from reference rates, scaled to this machine",
    CEILING: "< a ceiling if no job is retried: partly time limits, `resources.<stage>.runtime`",
}
_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Forecast:
    """A job with its estimates.

    Attributes:
        seconds, bytes: estimates for the job.
        needs: cores and GPUs that the job holds while it runs.
    """

    job: Job
    seconds: Estimate
    bytes: Estimate
    needs: StageResources


@dataclass(frozen=True)
class Row:
    """A sum over jobs.

    Attributes:
        label: name of the stage or arm, or "all".
        jobs, to_run, lost: numbers of jobs. A lost job will not run although one of its output
            files is missing.
        seconds_each: mean over the jobs to run; 0 without such jobs.
        core_hours, gpu_hours, money, bytes: sums over the jobs to run. Money is None without
            prices.
        source: source of the least certain estimate in the sums.
    """

    label: str
    jobs: int
    to_run: int
    lost: int
    seconds_each: float
    core_hours: float
    gpu_hours: float
    money: float | None
    bytes: float
    source: int


def needs(resources: Resources, stage: str, cores: int | None = None) -> StageResources:
    """Resources of one job of a stage.

    Args:
        resources: the study's resources.
        stage: name of the rule.
        cores: number of cores of this machine; Snakemake gives no job more. None on a cluster.
    """
    asked = resources.of(resources_key(stage))
    if cores is None or asked.threads <= cores:
        return asked
    return asked.model_copy(update={"threads": cores})


def forecasts(
    jobs: Iterable[Job], estimates: Estimates, resources: Resources, cores: int | None = None
) -> list[Forecast]:
    """A forecast for each job; `cores` as in `needs`."""
    return [
        Forecast(
            job,
            estimates.seconds(job.stage, job.arm),
            estimates.bytes(job.stage, job.arm),
            needs(resources, job.stage, cores),
        )
        for job in jobs
    ]


def rows(
    expected: Sequence[Forecast],
    label: Callable[[Job], str],
    order: Iterable[str],
    prices: Prices | None,
) -> list[Row]:
    """A row for each label in `order` that has jobs."""
    grouped = defaultdict(list)
    for one in expected:
        grouped[label(one.job)].append(one)
    return [total(name, grouped[name], prices) for name in order if name in grouped]


def total(label: str, expected: Sequence[Forecast], prices: Prices | None) -> Row:
    """Sum the forecasts `expected` into one row."""
    to_run = [one for one in expected if one.job.to_run]
    timed = [(one.seconds.value, one.needs) for one in to_run]
    return Row(
        label,
        len(expected),
        len(to_run),
        sum(bool(one.job.lost) for one in expected),
        sum(seconds for seconds, _ in timed) / max(len(timed), 1),
        sum(seconds * held.threads for seconds, held in timed) / 3600,
        sum(seconds * held.gpu for seconds, held in timed) / 3600,
        sum(prices.of_job(*one) for one in timed) if prices else None,
        sum(one.bytes.value for one in to_run),
        max((each.source for one in to_run for each in (one.seconds, one.bytes)), default=OWN),
    )


def wall_minutes(expected: Sequence[Forecast], study: Study, profile: Profile) -> float:
    """Minutes in which the remaining jobs end if every estimate is right.

    Shared stages come before and after the runs. The runs take the larger of two durations: their
    work, spread evenly over the cores or job slots, and the longest chain of jobs in which each
    waits for the one before.
    """
    runs = [one for one in expected if one.job.to_run and one.job.arm != SHARED]
    spread = 0.0
    if profile.cores:
        spread = sum(one.seconds.value * one.needs.threads for one in runs) / profile.cores
    elif profile.jobs:
        spread = sum(one.seconds.value for one in runs) / profile.jobs
    return (_shared_seconds(expected, study) + max(spread, _longest_run(runs, study))) / 60


def _shared_seconds(expected: Iterable[Forecast], study: Study) -> float:
    """Seconds of the shared stages, of which each waits for earlier ones.

    There is one exception: a pretrained base is made beside the games and the demonstrations.
    """
    of = defaultdict(float)
    for one in expected:
        if one.job.to_run and one.job.arm == SHARED:
            of[one.job.stage] += one.seconds.value
    data, base = of["fetch_assets"] + of["assets"] + of["expert"], of["base"]
    beginning = max(data, base) if study.model.tiny is None else data + base
    return beginning + sum(of[stage] for stage in ("sft", "merge", "figures", "report"))


def _longest_run(runs: Iterable[Forecast], study: Study) -> float:
    """Seconds of the longest run: its rounds, its fits and its last evaluation.

    If a run's rounds do not wait for each other, only the longest round counts.
    """
    chains, ends = defaultdict(float), defaultdict(float)
    for one in runs:
        run, seconds = (one.job.arm, one.job.seed), one.seconds.value
        if one.job.stage == "evaluate":
            ends[run] = seconds
        elif _each_waits(study, one.job.arm):
            chains[run] += seconds
        else:
            chains[run] = max(chains[run], seconds)
    return max((chains[run] + ends[run] for run in {*chains, *ends}), default=0.0)


def _each_waits(study: Study, arm: str) -> bool:
    """Whether a round needs the policy or the fit of the round before."""
    return study.training[arm].carry_policy or study.methods[arm].credit.declared.fits


def table(what: str, rows: Sequence[Row], currency: str | None, each: bool = False) -> list[str]:
    """Lines of a table.

    Args:
        what: heading of the labels.
        rows: the rows of the table, in order.
        currency: heading of the column with money; None leaves the column out.
        each: whether to add a column with the seconds of one job.
    """
    cells = []
    for row in rows:
        columns = {what: row.label, "jobs": row.jobs, "cached": row.jobs - row.to_run - row.lost}
        columns["to run"] = row.to_run
        if each:
            columns["s each"] = f"{row.seconds_each:,.1f}" if row.to_run else "-"
        columns |= {"core-h": _hours(row.core_hours), "GPU-h": _hours(row.gpu_hours)}
        if currency:
            columns[currency] = f"{row.money:,.2f}"
        # The mark has its own column, so that the numbers stay aligned.
        cells.append(columns | {"disk": size(row.bytes), "": _MARKS[row.source]})
    align = ["left", *["right"] * (len(cells[0]) - 2), "left"] if cells else None
    text = tabulate(cells, "keys", "plain", colalign=align, disable_numparse=True)
    return [line.rstrip() for line in text.splitlines()]


def footnotes(rows: Sequence[Row]) -> list[str]:
    """Explanations of the marks in the rows."""
    found = {row.source for row in rows if row.to_run}
    return [text for source, text in _FOOTNOTES.items() if source in found]


def wall_line(everything: Row, minutes: float, profile: Profile) -> str:
    """Number of jobs to run, and their `wall_minutes`."""
    if not everything.to_run:
        return "nothing to run"
    where = f"on {profile.cores} cores"
    if profile.cores is None:
        where = f"with {profile.jobs or 'any number'} at a time, without waiting in queues"
    known = "at most" if everything.source == CEILING else "about"
    return f"{everything.to_run} jobs to run, {known} {_duration(minutes)} {where}"


def lost_lines(lost: Sequence[str]) -> list[str]:
    """Lines about missing files of finished jobs; a run makes such files only on request."""
    if not lost:
        return []
    who = "1 finished job has" if len(lost) == 1 else f"{len(lost)} finished jobs have"
    return [
        f"{who} lost files that no later job needs, such as",
        f"  {lost[0]}",
        f"`snakemake {lost[0]}`, with the profile and --config, makes it again",
    ]


def price_lines(everything: Row, profile: Profile, judges: bool) -> list[str]:
    """Notes on prices: missing or example prices, the cost of disk, and judges.

    Args:
        everything: the sum over all jobs.
        profile: the profile, with or without prices.
        judges: whether an arm to run calls an outside service, such as a judge.
    """
    prices, path = profile.prices, profile.path / PRICES
    if prices is None:
        return [f"no money is shown: there is no {path} (profiles/slurm has an example)"]
    lines = []
    if prices.example:
        lines.append(f"the prices of {path} are examples: put in your own and remove `example`")
    month = everything.bytes / 1e9 * prices.disk_gb_month
    if month >= 0.005:
        lines.append(f"the disk: {month:,.2f} {prices.currency} a month, not in the column above")
    if judges:
        lines.append(f"what judges charge is not in the {prices.currency} above")
    return lines


def _duration(minutes: float) -> str:
    return f"{minutes:.1f} minutes" if minutes < 120 else f"{minutes / 60:,.1f} hours"


def size(count: float) -> str:
    """Bytes as text, such as "1.5 MB"; units are powers of 1000."""
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.{1 if power and count < 99.95 else 0}f} {_UNITS[power]}"


def _hours(value: float) -> str:
    return format(value, ".4f" if 0 < value < 1 else ",.2f" if value else ".0f")
