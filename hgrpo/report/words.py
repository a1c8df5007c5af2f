"""Writes the report's headline and first paragraphs, and turns numbers into text."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from hgrpo.evaluation.comparison import Comparison
from hgrpo.report.arms import Arms

MINUS, SPACE, DASH = "\u2212", "\u00a0", "\u2013"
MOST_NAMED = 5  # A headline names at most this many arms; the paragraphs name all.


@dataclass(frozen=True)
class Answer:
    """The headline and the paragraphs under it, each (heading, sentences)."""

    headline: str
    paragraphs: list[tuple[str, list[str]]]


def percent(share: float, digits: int = 1) -> str:
    """A fraction as percent, with a non-breaking space."""
    return DASH if pd.isna(share) else f"{100 * share:.{digits}f}{SPACE}%"


def points(difference: float, digits: int = 1) -> str:
    """A difference of fractions in percentage points, always signed."""
    if pd.isna(difference):
        return DASH
    value = round(100 * difference, digits)
    sign = "+" if value > 0 else MINUS if value < 0 else "±"
    return f"{sign}{abs(value):.{digits}f}"


def p_value(value: float) -> str:
    """A p-value with three decimals, or `< 0.001`."""
    if pd.isna(value):
        return DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


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


def answer(comparison: Comparison, arms: Arms, never_updated: Sequence[str] = ()) -> Answer:
    """The study's findings; `never_updated` are arms that never took an optimiser step."""
    paragraphs = {}
    if len(comparison.against_reference):
        differs = f"Does any arm differ from {arms.label(arms.reference)}?"
        paragraphs[differs] = _against_reference(comparison, arms)
    if len(comparison.against_untrained):
        taught = "Did training teach more than a better sampling temperature would?"
        paragraphs[taught] = _learning(comparison, arms)
    limits = _limits(comparison, arms)
    if never_updated:
        were, their = ("was", "its") if len(never_updated) == 1 else ("were", "their")
        names = listing([arms.label(name) for name in never_updated])
        limits.insert(
            0,
            f"{names} {were} never updated: all groups of {their} rollouts were dead, so {their} "
            "policy is still the supervised policy.",
        )
    if limits:
        paragraphs["What this study cannot say"] = limits
    return Answer(
        _capital(_headline(comparison, arms)),
        [(heading, [_capital(text) for text in texts]) for heading, texts in paragraphs.items()],
    )


def _headline(comparison: Comparison, arms: Arms) -> str:
    table, reference = comparison.against_reference, arms.label(arms.reference)
    if not len(table):
        return f"Only {reference} was trained, so there is nothing to compare."
    groups = {
        verdict: [arms.label(name) for name in table.loc[table["verdict"] == verdict, "method"]]
        for verdict in ("better", "worse", "inconclusive")
    }
    if int(table["n_seeds"].iloc[0]) == 1:
        ends = [f"{arms.label(row.method)} {points(row.difference)}" for row in table.itertuples()]
        return f"One seed, no verdict: {listing(ends)} points against {reference}."
    parts = []
    verbs = {"better": ("beats", "beat"), "worse": ("does worse than", "do worse than")}
    for verdict, (one, several) in verbs.items():
        if names := groups[verdict]:
            parts.append(f"{_named(names)} {one if len(names) == 1 else several} {reference}")
    if not parts:
        number = len(groups["inconclusive"])
        what = {
            1: f"{groups['inconclusive'][0]} cannot",
            2: "neither of the two other arms can",
        }.get(number, f"none of the {_count(number)} other arms can")
        return f"Inconclusive: {what} be told apart from {reference}."
    if groups["inconclusive"]:
        parts.append(f"inconclusive for {_named(groups['inconclusive'], 'others')}")
    return f"{'; '.join(parts)}."


def _named(names: list[str], rest: str = "arms") -> str:
    return listing(names) if len(names) <= MOST_NAMED else f"{_count(len(names))} {rest}"


def _against_reference(comparison: Comparison, arms: Arms) -> list[str]:
    table, reference = comparison.against_reference, arms.label(arms.reference)
    level = percent(comparison.protocol.level, 0)
    sentences = []
    for row in table[table["verdict"] != "inconclusive"].itertuples():
        sentences.append(
            f"{arms.label(row.method)} solves {percent(row.success)} of the {row.n_tasks} test "
            f"tasks greedily against {percent(row.baseline_success)} for {reference}: "
            f"{points(row.difference)} points ({level} interval {_bounds(row)}), {row.verdict}."
        )
    open_rows = table[table["verdict"] == "inconclusive"]
    if len(open_rows):
        names = [arms.label(name) for name in open_rows["method"]]
        visible = open_rows["minimum_detectable_effect"]
        size = _range(visible.min(), visible.max())
        seeds = int(table["n_seeds"].iloc[0])
        sentences.append(
            f"Inconclusive for {listing(names)}. This does not mean equal: with {_count(seeds)} "
            f"seeds and {table['n_tasks'].iloc[0]} tasks, only a difference of about {size} points "
            "would have been detected four times out of five after the correction."
        )
    return sentences + _corrected(open_rows, arms)


def _corrected(open_rows: pd.DataFrame, arms: Arms) -> list[str]:
    """Explain intervals that exclude zero although the verdict is inconclusive."""
    outside = open_rows[(open_rows["lower"] > 0) | (open_rows["upper"] < 0)]
    if outside.empty:
        return []
    names = listing([arms.label(name) for name in outside["method"]])
    return [
        f"The interval of {names} excludes zero. Among several comparisons this is expected now "
        "and then, so Holm's correction makes the verdict inconclusive."
    ]


def _learning(comparison: Comparison, arms: Arms) -> list[str]:
    table, best = comparison.against_untrained, comparison.best_temperature
    name, level = arms.label(arms.untrained), table["baseline_success"].iloc[0]
    rows = comparison.methods.set_index(["method", "temperature"])["success"]
    greedy = rows[arms.untrained, 0.0]
    sentences = [
        f"All arms start from the same supervised policy ({name}). It solves {percent(greedy)} "
        + (
            f"greedily and {percent(level)} at {temperature_name(best)}, its best temperature on "
            "validation. Arms are compared with the second number."
            if best
            else "greedily, and greedy is its best temperature on validation."
        )
    ]
    for verdict, text in (
        ("one seed", "On this seed, with intervals over test tasks only: {arms}."),
        ("better", "Better, so training taught them something: {arms}."),
        ("worse", "Worse: {arms}."),
        (
            "inconclusive",
            "Inconclusive: {arms}. If their training reward rose, the policy may have become more "
            "decided without learning anything new.",
        ),
    ):
        gains = [
            f"{arms.label(row.method)} {points(row.difference)} ({_bounds(row)})"
            for row in table[table["verdict"] == verdict].itertuples()
        ]
        if gains:
            sentences.append(text.format(arms=listing(gains)))
    return sentences + _corrected(table[table["verdict"] == "inconclusive"], arms)


def _limits(comparison: Comparison, arms: Arms) -> list[str]:
    table = comparison.methods
    table = table[table["method"] != comparison.protocol.untrained]
    sentences = []
    if not len(table):
        return sentences
    seeds = int(table["n_seeds"].max())
    if seeds == 1:
        sentences.append(
            "One seed was trained. Intervals cover only the choice of test tasks and say nothing "
            "about another seed, so there is no verdict. Train more seeds."
        )
    elif seeds < 5:
        sentences.append(
            f"The spread between seeds is estimated from only {_count(seeds)} runs, which makes "
            "the intervals wide. More seeds would narrow them."
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


def _bounds(row) -> str:
    return f"{points(row.lower)} to {points(row.upper)}"


def _range(low: float, high: float) -> str:
    low, high = f"{100 * low:.1f}", f"{100 * high:.1f}"
    return low if low == high else f"{low} to {high}"


def _count(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[number] if number < len(words) else str(number)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
