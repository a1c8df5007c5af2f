"""A plan as text: a table by stage, a table by arm, and notes on both."""

from collections.abc import Sequence

from hgrpo.workflow.planning.estimates import CEILING, OTHER_ARMS, OWN, REFERENCE
from hgrpo.workflow.planning.forecast import Row
from hgrpo.workflow.planning.profile import PRICES, Profile

_MARKS = {OWN: "", OTHER_ARMS: "+", REFERENCE: "*", CEILING: "<"}
_FOOTNOTES = {
    OTHER_ARMS: "+ in part from other arms of this study, or from a colleague's machine",
    REFERENCE: "* in part from reference rates, scaled to this machine",
    CEILING: "< a ceiling if no job is retried: partly time limits, `resources.<stage>.runtime`",
}
# Minutes and dollars of a round by kind of credit: README of JosephLi2023/CS224R, 32eb059.
_H_GRPO = {"flat": (13, 5), "progress": (13, 5), "judge": (15, 6), "turnrd": (20, 8)}
_H_GRPO_ROUND = 160 * 30  # trajectories times turn cap
_NAME = 24  # least width of a label, in characters
_UNITS = ("B", "kB", "MB", "GB", "TB")


def table(what: str, rows: Sequence[Row], currency: str | None, each: bool = False) -> list[str]:
    """Lines of a table.

    Args:
        what: heading of the labels.
        rows: the rows of the table, in order.
        currency: heading of the column with money; None leaves the column out.
        each: whether to add a column with the seconds of one job.
    """
    width = max(_NAME, *(len(row.label) for row in rows)) if rows else _NAME
    heads = [what, "jobs", "cached", "to run", *(["s each"] if each else []), "core-h", "GPU-h"]
    heads += [*([currency] if currency else []), "disk"]
    cells = [heads]
    for row in rows:
        cells.append([row.label, str(row.jobs), str(row.jobs - row.to_run - row.lost)])
        cells[-1] += [str(row.to_run)]
        cells[-1] += [f"{row.seconds_each:,.1f}" if row.to_run else "-"] if each else []
        cells[-1] += [_hours(row.core_hours), _hours(row.gpu_hours)]
        cells[-1] += [f"{row.money:,.2f}"] if currency else []
        cells[-1] += [size(row.bytes) + _MARKS[row.source]]
    lines = []
    for label, *numbers in cells:
        line = f"{label:<{width}}{numbers[0]:>7}{numbers[1]:>8}{numbers[2]:>8}"
        line += "".join(f"{number:>10}" for number in numbers[3:-1])
        # Put the mark after the column, so that the numbers stay aligned.
        mark = numbers[-1][-1] if numbers[-1][-1] in "+*<" else ""
        lines.append(f"{line}{numbers[-1].removesuffix(mark):>10}{mark}")
    return lines


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
