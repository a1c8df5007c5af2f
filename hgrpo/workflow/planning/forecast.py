"""Time, cost and disk space of the jobs to run, summed by stage or by arm, and as text."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from hgrpo.stages.order import resources_key
from hgrpo.store.plan import SHARED, Plan, Planned
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
from hgrpo.workflow.planning.profile import PRICES, Prices, Profile

_MARKS = {OWN: "", OTHER_ARMS: "+", REFERENCE: "*", CEILING: "<"}
_FOOTNOTES = {
    OTHER_ARMS: "+ in part from other arms of this study",
    REFERENCE: "* in part from reference rates, scaled to this machine",
    CEILING: "< a ceiling if no job is retried: partly time limits, `resources.<stage>.runtime`",
}
# Minutes and dollars of a round by kind of credit: README of JosephLi2023/CS224R, 32eb059.
_H_GRPO = {"flat": (13, 5), "progress": (13, 5), "judge": (15, 6), "turnrd": (20, 8)}
_H_GRPO_ROUND = 160 * 30  # trajectories times turn cap
_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class Forecast:
    """A job with its estimates.

    Attributes:
        to_run: whether a run would start the job.
        seconds, bytes: estimates for the job.
        needs: cores and GPUs that the job holds while it runs.
    """

    job: Planned
    to_run: bool
    seconds: Estimate
    bytes: Estimate
    needs: StageResources

    @property
    def core_hours(self) -> float:
        """Hours times the cores that the job holds."""
        return self.seconds.value * self.needs.threads / 3600

    @property
    def gpu_hours(self) -> float:
        """Hours times the GPUs that the job holds."""
        return self.seconds.value * self.needs.gpu / 3600


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
    plan: Plan,
    estimates: Estimates,
    cores: int | None = None,
    to_run: Iterable[Planned] | None = None,
) -> list[Forecast]:
    """A forecast for each job of a study.

    Args:
        cores: as for `needs`.
        to_run: the jobs that a run starts; None: those that the report lacks.
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
    """Source of the least certain estimate of the jobs to run."""
    to_run = [one for one in expected if one.to_run]
    return max((each.source for one in to_run for each in (one.seconds, one.bytes)), default=OWN)


def wall_minutes(expected: Sequence[Forecast], study: Study, profile: Profile) -> float:
    """Minutes in which the remaining jobs end if every estimate is right.

    Shared stages come before and after the runs. The runs take the larger of two durations: their
    work, spread evenly over the cores or job slots, and the longest chain of jobs in which each
    waits for the one before.
    """
    runs = [one for one in expected if one.to_run and one.job.arm != SHARED]
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
        if one.to_run and one.job.arm == SHARED:
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
        run, seconds = (one.job.arm, one.job.job.seed), one.seconds.value
        if one.job.stage == "evaluate":
            ends[run] = seconds
        elif study.training[run[0]].carry_policy or study.methods[run[0]].credit.declared.fits:
            chains[run] += seconds
        else:
            chains[run] = max(chains[run], seconds)
    return max((chains[run] + ends[run] for run in {*chains, *ends}), default=0.0)


def grouped(
    expected: Sequence[Forecast], label: str, order: Iterable[str]
) -> dict[str, list[Forecast]]:
    """The forecasts by an attribute of their jobs, in the order of its values."""
    of = defaultdict(list)
    for one in expected:
        of[getattr(one.job, label)].append(one)
    return {name: of[name] for name in order if name in of}


def table(
    what: str, rows: Mapping[str, Sequence[Forecast]], prices: Prices | None, each: bool = False
) -> list[str]:
    """Lines of a table, with a row for each group of jobs.

    Args:
        what: heading of the labels.
        rows: label -> forecasts. All but the number of jobs are sums over the jobs to run.
        prices: None leaves the column with money out.
        each: whether to add a column with the mean seconds of a job.
    """
    cells = []
    for label, expected in rows.items():
        to_run = [one for one in expected if one.to_run]
        columns = {what: label, "jobs": len(expected), "cached": len(expected) - len(to_run)}
        columns["to run"] = len(to_run)
        if each:
            seconds = sum(one.seconds.value for one in to_run)
            columns["s each"] = f"{seconds / len(to_run):,.1f}" if to_run else "-"
        columns["core-h"] = _hours(sum(one.core_hours for one in to_run))
        columns["GPU-h"] = _hours(sum(one.gpu_hours for one in to_run))
        if prices:
            money = sum(prices.of_job(one.seconds.value, one.needs) for one in to_run)
            columns[prices.currency] = f"{money:,.2f}"
        columns["disk"] = size(sum(one.bytes.value for one in to_run))
        # The mark has its own column, so that the numbers stay aligned.
        cells.append(columns | {"": _MARKS[source_of(expected)]})
    align = ["left", *["right"] * (len(cells[0]) - 2), "left"] if cells else None
    text = tabulate(cells, "keys", "plain", colalign=align, disable_numparse=True)
    return [line.rstrip() for line in text.splitlines()]


def footnotes(rows: Mapping[str, Sequence[Forecast]]) -> list[str]:
    """Explanations of the marks in the rows."""
    sources = {source_of(expected) for expected in rows.values()}
    return [text for source, text in _FOOTNOTES.items() if source in sources]


def wall_line(expected: Sequence[Forecast], study: Study, profile: Profile) -> str:
    """Number of jobs to run, and their `wall_minutes`."""
    to_run = sum(one.to_run for one in expected)
    if not to_run:
        return "nothing to run"
    where = f"on {profile.cores} cores"
    if profile.cores is None:
        where = f"with {profile.jobs or 'any number'} at a time, without waiting in queues"
    known = "at most" if source_of(expected) == CEILING else "about"
    minutes = wall_minutes(expected, study, profile)
    return f"{to_run} jobs to run, {known} {_duration(minutes)} {where}"


def _duration(minutes: float) -> str:
    return f"{minutes:.1f} minutes" if minutes < 120 else f"{minutes / 60:,.1f} hours"


def foreign_lines(rounds: Sequence[tuple[str, int]], limit: float) -> list[str]:
    """Published price of H-GRPO's rounds, scaled to the rounds to run on GPUs.

    Args:
        rounds: kind of credit, and trajectories times turn cap, of each round.
        limit: minutes after which a round is ended, the least of all attempts.
    """
    if not rounds:
        return []
    prices = [(_H_GRPO.get(kind, _H_GRPO["flat"]), played) for kind, played in rounds]
    minutes, dollars = (sum(price[n] * played for price, played in prices) for n in (0, 1))
    text = f"{_duration(minutes / _H_GRPO_ROUND)}, ${dollars / _H_GRPO_ROUND:,.0f}"
    longest = max(price[0] * played for price, played in prices) / _H_GRPO_ROUND
    late = (
        f"  CAUTION: one round, {_duration(longest)}, is over resources.rl_round.runtime, "
        f"{_duration(limit)}: such rounds end unfinished"
    )
    return [
        "foreign: a round of H-GRPO, of 160 trajectories of up to 30 turns, took 13 minutes and $5",
        "  (flat, Progressive), 15 and $6 (judge), 20 and $8 (TurnRD): their price, $23 an hour;",
        f"  in proportion to trajectories x turns, the {len(rounds)} rounds to run: {text}",
        *([late] if longest > limit else []),
    ]


def price_lines(expected: Iterable[Forecast], profile: Profile, judges: bool) -> list[str]:
    """Notes on prices: missing or example prices, the cost of disk, and judges.

    Args:
        expected: the forecasts of all jobs.
        profile: the profile, with or without prices.
        judges: whether an arm to run calls an outside service, such as a judge.
    """
    prices, path = profile.prices, profile.path / PRICES
    if prices is None:
        return [f"no money is shown: there is no {path} (profiles/slurm has an example)"]
    lines = []
    if prices.example:
        lines.append(f"the prices of {path} are examples: put in your own and remove `example`")
    written = sum(one.bytes.value for one in expected if one.to_run)
    month = written / 1e9 * prices.disk_gb_month
    if month >= 0.005:
        lines.append(f"the disk: {month:,.2f} {prices.currency} a month, not in the column above")
    if judges:
        lines.append(f"what judges charge is not in the {prices.currency} above")
    return lines


def size(count: float) -> str:
    """Bytes as text, such as "1.5 MB"; units are powers of 1000."""
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.{1 if power and count < 99.95 else 0}f} {_UNITS[power]}"


def _hours(value: float) -> str:
    return format(value, ".4f" if 0 < value < 1 else ",.2f" if value else ".0f")
