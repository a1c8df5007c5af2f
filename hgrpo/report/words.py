"""Writes the report's headline and first paragraphs, and turns numbers into text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hgrpo.evaluation.cautions import first_collapse
from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST
from hgrpo.evaluation.power import MOST_SEEDS
from hgrpo.evaluation.statistics import DECIDED, FEWEST_SEEDS
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import endpoint_phrase

MINUS, SPACE, DASH = "\u2212", "\u00a0", "\u2013"
MOST_NAMED = 5  # A sentence with more arms than this gives their number only.
_LESS = ", less than the A/A twin moved"
_NO_SPREAD = "all runs of an arm have the same score, so the spread between them is not known"


@dataclass(frozen=True)
class Answer:
    """What the page says first.

    Attributes:
        headline: which arm differs from the reference, and which runs collapsed.
        sure: whether training significantly beats sampling alone; with too few seeds, what
            is known of chance; or what it means that no arm has solved anything. It may be "".
        cautions: why the comparison may mean little, and what to change.
        paragraphs: what the first table does not show, each (heading, sentences).
    """

    headline: str
    sure: str
    cautions: list[str]
    paragraphs: list[tuple[str, list[str]]]


def percent(share: float, digits: int = 1) -> str:
    """A fraction as percent, with a non-breaking space."""
    return DASH if pd.isna(share) else f"{100 * share:.{digits}f}{SPACE}%"


def in_points(fraction: float, digits: int = 1) -> float:
    """A fraction in percentage points, rounded."""
    # Equal numbers must round alike: NumPy rounds 18.15 up and Python down, and sums leave noise.
    return round(round(100 * float(fraction), 6), digits)


def points(difference: float, digits: int = 1) -> str:
    """A difference of fractions in percentage points, always signed."""
    if pd.isna(difference):
        return DASH
    value = in_points(difference, digits)
    sign = "+" if value > 0 else MINUS if value < 0 else "±"
    return f"{sign}{abs(value):.{digits}f}"


def p_value(value: float) -> str:
    """A p-value with three decimals, or `< 0.001`."""
    if pd.isna(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def duration(seconds: float) -> str:
    """A time in minutes, or in hours and minutes: `9 min`, `2 h 5 min`."""
    hours, minutes = divmod(max(1, round(seconds / 60)), 60)
    return f"{hours}{SPACE}h {minutes}{SPACE}min" if hours else f"{minutes}{SPACE}min"


def temperature_name(temperature: float) -> str:
    """A temperature as text: `greedy` or `T = 0.5`."""
    return "greedy" if temperature == 0 else f"T{SPACE}={SPACE}{temperature:g}"


def opponent(arms: Arms, name: str, temperature: float) -> str:
    """The label of a comparison's baseline: `flat GRPO`, or `SFT only, T = 0.5`."""
    played = "" if arms[name].trained else f", {temperature_name(temperature)}"
    return arms.label(name) + played


def listing(names: list[str], last: str = "and") -> str:
    """Join names as in a sentence: `a`, `a and b`, or `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def if_several(seeds: Iterable[int], text: str) -> str:
    """The text if there are several seeds, and "" if there is one."""
    return text if len(set(seeds)) > 1 else ""


def ends(lower: str, upper: str, form: str = "{}") -> str:
    """An interval as text, put into `form`; "" if its ends are dashes, as with one seed."""
    return "" if DASH in (lower, upper) else form.format(f"{lower} to {upper}")


def with_interval(difference: float, lower: float, upper: float) -> str:
    """A difference in points with its interval in brackets, if it has one."""
    return points(difference) + ends(points(lower), points(upper), " ({})")


def pooled_twin(comparison: Comparison, arms: Arms) -> str:
    """A sentence, after a space, if runs of the A/A twin count as runs of the reference; or ""."""
    table = comparison.against_reference
    if table.empty or not (table["baseline_runs"] > table["n_seeds"]).any():
        return ""
    return (
        f" Runs of the A/A twin count as runs of {arms.label(arms.reference)}: the other arms' "
        "differences are from the mean of both, and no plain subtraction of two means."
    )


def answer(
    comparison: Comparison, arms: Arms, cautions: Sequence[str] = (), spread: str = ""
) -> Answer:
    """The study's findings, with further cautions, and how far published seeds differ if known."""
    paragraphs = {}
    table = comparison.against_reference
    if len(table) and not _too_few(table):
        differs = f"How sure are the verdicts against {arms.label(arms.reference)}?"
        paragraphs[differs] = _against_reference(comparison, arms)
    if len(comparison.against_untrained):
        paragraphs["Why compare with sampling alone?"] = _learning(comparison, arms)
    limits = _limits(comparison, arms)
    if limits:
        paragraphs["What this study cannot say"] = limits
    collapse = _collapse(comparison, arms)
    first = [*collapse[:1], *_mine(comparison, arms), _headline(comparison, arms)]
    return Answer(
        " ".join(map(_capital, first)),
        _sure(comparison, arms, spread),
        [*collapse[1:], *_few_seeds(comparison), *cautions],
        [(heading, [_capital(text) for text in texts]) for heading, texts in paragraphs.items()],
    )


def _too_few(table: pd.DataFrame) -> bool:
    """Whether the comparisons have too few seeds for a verdict."""
    return int(table["n_seeds"].iloc[0]) < FEWEST_SEEDS


def _mine(comparison: Comparison, arms: Arms) -> list[str]:
    """The differences of the user's own arms that can be compared."""
    table = comparison.against_reference
    return [
        f"yours, {arms.label(row.method)}: {points(row.difference)} points "
        f"{'over' if row.difference > 0 else 'against'} {arms.label(arms.reference)}"
        f"{ends(points(row.lower), points(row.upper), ' ({})')}, "
        f"{'no verdict' if _too_few(table) else row.verdict}."
        for row in table.itertuples()
        if row.method in arms.mine
    ]


def _headline(comparison: Comparison, arms: Arms) -> str:
    table, reference = comparison.against_reference, arms.label(arms.reference)
    if not arms.has_reference:
        return (
            f"The comparison with {reference} waits, because {reference} is not among these arms."
        )
    if not len(table):
        alone = f"Only {reference} was trained, so there is nothing to compare."
        for row in comparison.against_untrained.head(1).itertuples():
            than = _sampling(comparison, arms)
            alone += f" Its difference from {than} is {points(row.difference)} points."
        return alone
    if _nothing_won(comparison):
        done = "solved" if comparison.protocol.settings.score == "success" else "was paid for"
        return f"No arm {done} a single test task, so there is nothing to compare."
    measured = f"in {endpoint_phrase(comparison)}"
    is_twin = table["method"].isin(arms.twins)
    twins = table.loc[is_twin, "difference"].abs()
    chance = _twins(table[is_twin])
    if _too_few(table):
        number = int(table["n_seeds"].iloc[0])
        seeds = _capital(_count(number)) + (" seeds" if number > 1 else " seed")
        tested = _tested(comparison, arms, measured, twins.max())
        return f"{seeds}, no verdict: {tested}{chance}."
    parts, unclear = [], table[table["verdict"] == "inconclusive"]
    unclear = unclear[~unclear["method"].isin(arms.twins)] if not is_twin.all() else unclear
    verbs = {"better": ("beats", "beat"), "worse": ("does worse than", "do worse than")}
    for verdict, forms in verbs.items():
        if len(rows := table[table["verdict"] == verdict]):
            compared = _sized(rows, arms, twins.max())
            parts.append(f"{compared} {forms[len(rows) > 1]} {reference}")
    if not parts:
        compared = _sized(unclear, arms)
        return f"Inconclusive: {compared} cannot be told apart from {reference} {measured}{chance}."
    parts[0] += f" {measured}"
    unclear = unclear[~unclear["method"].isin(arms.mine)]  # the first sentence has these
    if len(unclear):
        parts.append(f"inconclusive for {_sized(unclear, arms, rest='others')}")
    return f"{'; '.join(parts)}{chance}."


def _twins(twins: pd.DataFrame) -> str:
    """How far the A/A twins are from the reference, with intervals; empty without a twin."""
    moved = [
        f"{points(row.difference)} points{ends(points(row.lower), points(row.upper), ' ({})')}"
        for row in twins.itertuples()
    ]
    name = "the A/A twin differs" if len(moved) == 1 else "A/A twins differ"
    return f"; {name} by {listing(moved)}" if moved else ""


def _tested(comparison: Comparison, arms: Arms, measured: str, chance: float) -> str:
    """The arms that are neither controls nor gated, without a ranking; `chance` as in `_sized`."""
    table, reference = comparison.against_reference, arms.label(arms.reference)
    gated = {gate.arm for gate in comparison.protocol.settings.gates}
    table = table[~table["method"].isin(arms.mine)]  # the first sentence has these
    tested = table[[not (name in gated or arms.is_control(name)) for name in table["method"]]]
    if tested.empty and arms.mine:  # their yardsticks
        tested = table[~table["method"].isin(arms.twins)]
    if tested.empty:
        only = "your arms" if arms.mine else "controls"
        return f"beside {reference}, only {only} were trained"
    return f"{_sized(tested, arms, chance, 'arms under test')} against {reference} {measured}"


def _sized(rows: pd.DataFrame, arms: Arms, chance: float = 0.0, rest: str = "arms") -> str:
    """Arms with their differences in points, and with the intervals of one or two arms.

    `chance` is the largest absolute difference of an A/A twin; arms with a smaller one are marked.
    """
    if len(rows) > MOST_NAMED:
        less = int((rows["difference"].abs() < chance).sum())
        few = f", {_count(less)} of them{_LESS[1:]}" if less else ""
        low, high = points(rows["difference"].min()), points(rows["difference"].max())
        return f"{_count(len(rows))} {rest} ({low} to {high} points{few})"
    names = []
    for row in rows.itertuples():
        interval = ends(points(row.lower), points(row.upper), ", {}") if len(rows) < 3 else ""
        small = _LESS if abs(row.difference) < chance else ""
        names.append(f"{arms.label(row.method)} ({points(row.difference)} points{interval}{small})")
    return listing(names)


def _collapse(comparison: Comparison, arms: Arms) -> list[str]:
    """A sentence that names collapsed runs, and what to change; empty if there are none.

    Controls are left out, because altered credit is meant to do badly.
    """
    tested = comparison.rounds_by_seed.sort_values("round")
    tested = tested[tested["panel"] == TEST]
    sft = tested.loc[tested["method"] == arms.untrained, "success"].mean()
    # Without an evaluated SFT policy, a typical run after its first round stands for it.
    start = tested.loc[tested["round"] == 1, "success"].median() if pd.isna(sft) else sft
    sentences, seeds = [], comparison.seeds["seed"]
    for name in [name for name in arms.trained if not arms[name].credit.is_control]:
        runs = [run for _, run in tested[tested["method"] == name].groupby("seed")]
        falls = [first_collapse(run["success"].tolist(), start, comparison.n_test) for run in runs]
        rows = [run.iloc[fall] for run, fall in zip(runs, falls, strict=True) if fall is not None]
        if rows:
            role = ", the reference," if name == arms.reference else ""
            share = if_several(seeds, f" in {len(rows)} of {seeds.nunique()} seeds")
            sentences.append(
                f"{arms.label(name)}{role} collapsed{share} ({percent(rows[0]['success'])} after "
                f"round {rows[0]['round']} of seed {rows[0]['seed']})"
            )
    if not sentences:
        return []
    little = ""
    whose = "its" if len(sentences) == 1 else "their"
    advice = f"Check the sign of {whose} credit, then try a lower training.lr for all arms."
    if any(", the reference," in sentence for sentence in sentences):
        little = ", so differences from it mean little"
        advice = (
            "Is the comparison tuned fairly? A collapse of the reference tells more about tuning "
            "than about credit: try a lower training.lr or a larger training.kl.init, for all arms."
        )
    if len(sentences) > MOST_NAMED:
        sentences[1:] = [f"so did {_count(len(sentences) - 1)} other arms"]
    return [f"{listing(sentences)}{little}.", advice]


def _few_seeds(comparison: Comparison) -> list[str]:
    """From how many seeds on there are verdicts, if there are some seeds, but too few."""
    table = comparison.against_reference
    if table.empty or not 1 < int(table["n_seeds"].iloc[0]) < FEWEST_SEEDS:
        return []
    why = (
        f"The report gives verdicts from {_count(FEWEST_SEEDS)} seeds on: with fewer, equal arms "
        "would be called different too often."
    )
    # Two runs of an arm say too little of their spread.
    needed = f" {_seeds_needed(comparison, '')}" if table["n_seeds"].iloc[0] > 2 else ""
    return [why + needed]


def _nothing_won(comparison: Comparison) -> bool:
    """Whether the endpoint of every arm is zero."""
    return not comparison.methods["endpoint"].any()


def _chance(comparison: Comparison, arms: Arms, spread: str) -> str:
    """How far apart chance alone puts arms, as far as few seeds and published runs show it."""
    table, reference = comparison.against_reference, arms.label(arms.reference)
    twins = [arms.label(name) for name in table["method"] if name in arms.twins]
    parts = [
        f"{_capital(name)} differs from {reference} in its random numbers only." for name in twins
    ]
    unknown = "How much chance alone makes is not known from so few seeds."
    return " ".join(filter(None, [*parts, spread])) or unknown


def _sure(comparison: Comparison, arms: Arms, spread: str) -> str:
    table, compared = comparison.against_untrained, comparison.against_reference
    if len(compared) and _too_few(compared) and not _nothing_won(comparison):
        return _chance(comparison, arms, spread)
    if not len(table) or (_too_few(table) and not _nothing_won(comparison)):
        return ""
    if _nothing_won(comparison):
        return (
            "A small model may win nothing after a few steps of training. It says nothing about "
            "the arms: that takes longer training, or an easier game."
        )
    decided = table["p_holm"] < 1 - comparison.protocol.level
    better, worse = (int((decided & (sign * table["difference"] > 0)).sum()) for sign in (1, -1))
    sampling = f"sampling alone ({_sampling(comparison, arms)})"
    parts = []
    if better:
        parts.append(f"training beats {sampling}{_share(better, len(table))}")
    if worse:
        than = "than it" if better else f"than {sampling}"
        parts.append(f"{'' if better else 'training '}does worse {than}{_share(worse, len(table))}")
    if not parts:
        return f"In no arm is the difference from {sampling} significant after correction."
    return f"Significant after correction: {', and '.join(parts)}."


def _share(number: int, all_arms: int) -> str:
    if all_arms == 1:
        return ""
    return f" in {'all' if number == all_arms else f'{_count(number)} of'} {_count(all_arms)} arms"


def _sampling(comparison: Comparison, arms: Arms) -> str:
    return opponent(arms, arms.untrained, comparison.best_temperature)


def _against_reference(comparison: Comparison, arms: Arms) -> list[str]:
    table = comparison.against_reference
    open_rows = table[table["verdict"] == "inconclusive"]
    sentences = []
    if len(open_rows) < len(table) > 1:
        sentences.append(
            f"Better and worse hold after Holm's correction over {_count(len(table))} comparisons."
        )
    sentences += _repeats(table, arms)
    if len(open_rows):
        sentences.append(_detectable(open_rows))
    sentences.append(_seeds_needed(comparison, " ".join(sentences)))
    return sentences + _corrected(open_rows, arms)


def _repeats(table: pd.DataFrame, arms: Arms) -> list[str]:
    """In how many of a hundred repeats each decided comparison would be decided again."""
    rows = table[table["verdict"].isin(DECIDED)]
    if rows.empty:
        return []
    alike = [f"{100 * share:.0f}" for share in rows["repeats_alike"]]
    named = [
        f"{arms.label(name)} in {many}" for name, many in zip(rows["method"], alike, strict=True)
    ]
    cases = listing(named)
    if len(named) > MOST_NAMED:
        cases = f"these arms in {min(alike, key=int)} to {max(alike, key=int)}"
    return [
        f"If the true differences are as found, a repeat of this study gives the same verdict for "
        f"{cases} of a hundred cases. A difference that was found is rather too large than too "
        "small, so expect fewer."
    ]


def _detectable(open_rows: pd.DataFrame) -> str:
    """Which difference this study would have detected, or why nobody can tell."""
    known = open_rows["minimum_detectable_effect"].dropna()
    if known.empty:
        return (
            "Inconclusive does not mean equal. Which difference would have been detected cannot be "
            f"estimated, because {_NO_SPREAD}."
        )
    seeds = int(open_rows["n_seeds"].iloc[0])
    size = f"only a difference of about {_range(known.min(), known.max())} points"
    size = size if np.isfinite(known.min()) else "no possible difference"
    return (
        f"Inconclusive does not mean equal: with {_count(seeds)} seeds and "
        f"{open_rows['n_tasks'].iloc[0]} tasks, {size} would have been detected four times out "
        "of five after the correction."
    )


def _seeds_needed(comparison: Comparison, before: str) -> str:
    """How many seeds some differences need, from the spread that this study shows.

    Where it shows none, the sentence says so, unless the words `before` it have.
    """
    table = comparison.seeds_needed
    if table.empty:
        why = "for the same reason" if _NO_SPREAD in before else f"because {_NO_SPREAD}"
        return f"How many seeds a difference needs cannot be estimated, {why}."
    parts = []
    for size, seeds in zip(table["difference"], table["seeds"], strict=True):
        number = f"more than {MOST_SEEDS}" if pd.isna(seeds) else f"{seeds:.0f}"
        parts.append(f"{100 * size:g} points{'' if parts else ' need'} {number}")
    parts[0] += " seeds"
    beyond = [f"{100 * size:g}" for size in table.loc[table["seeds"].isna(), "difference"]]
    more = f" For {listing(beyond)} points, more tasks would help more than more seeds."
    more = more if beyond else ""
    return (
        f"By the spread of these runs, a rough guide, {listing(parts)}: on the same tasks, with "
        f"the same chance of detection and the same correction.{more}"
    )


def _corrected(open_rows: pd.DataFrame, arms: Arms) -> list[str]:
    """Explain intervals that exclude zero although the verdict is inconclusive."""
    outside = open_rows[(open_rows["lower"] > 0) | (open_rows["upper"] < 0)]
    if outside.empty:
        return []
    labels = [arms.label(name) for name in outside["method"]]
    names = listing(labels) if len(labels) <= MOST_NAMED else f"{_count(len(labels))} arms"
    return [
        f"The interval of {names} excludes zero. Among several comparisons this is expected now "
        "and then, so Holm's correction makes the verdict inconclusive."
    ]


def _learning(comparison: Comparison, arms: Arms) -> list[str]:
    table, best = comparison.against_untrained, temperature_name(comparison.best_temperature)
    alone = comparison.methods["method"] == comparison.protocol.untrained
    several = comparison.methods.loc[alone, "temperature"].nunique() > 1
    how = "plays best on validation" if several else "is played"
    open_rows = table[table["verdict"] == "inconclusive"]
    sentences = [
        f"A policy that is only sampled at another temperature can solve more tasks without having "
        f"learned anything. So trained arms have to beat {arms.label(arms.untrained)}, the policy "
        f"that all start from, as it {how}: {best}.",
    ]
    if len(open_rows):
        sentences.append(
            "Where this is inconclusive although the training reward rose, the policy may have "
            "become more decided without learning anything new."
        )
    return sentences + _corrected(open_rows, arms)


def _limits(comparison: Comparison, arms: Arms) -> list[str]:
    table = comparison.methods
    table = table[table["method"] != comparison.protocol.untrained]
    sentences = []
    if not len(table):
        return sentences
    seeds = int(table["n_seeds"].max())
    if seeds == 1:
        sentences.append(
            "One seed was trained. It shows no spread between seeds, so there are no "
            "intervals and no verdicts, and how many seeds are enough cannot be estimated."
        )
    elif len(comparison.against_reference) and comparison.seeds_needed.empty:
        sentences.append(
            f"The {_count(seeds)} seeds show no spread, so intervals cover only the choice of test "
            "tasks and say nothing about another seed."
        )
    sentences.append(
        "Every arm starts from the same supervised policy. The results say nothing about another "
        "policy, model or environment."
    )
    controls = [arm.label for arm in arms.by_name.values() if arm.credit.is_control]
    if controls:
        sentences.append(
            f"{listing(controls)} is a control with shuffled turn credit. A credit assigner that "
            "does no better has not shown that its credit helps."
        )
    return sentences


def _range(low: float, high: float) -> str:
    ends = [f"{100 * low:.1f}", f"{100 * high:.1f}" if np.isfinite(high) else "over 100"]
    return " to ".join(dict.fromkeys(ends))


def _count(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number] if number < len(words) else str(number)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def ended_runs(stops: pd.DataFrame, seeds: int) -> dict[str, str]:
    """Arm -> how many of its runs a rule has ended, such as "stopped in 2 of 5 runs"."""
    counted = stops.groupby(["method", "status"], sort=False).size()
    by_arm: dict[str, list[str]] = {}
    for (method, status), many in counted.items():
        by_arm.setdefault(method, []).append(f"{status} in {many} of {seeds} runs")
    return {method: ", ".join(parts) for method, parts in by_arm.items()}
