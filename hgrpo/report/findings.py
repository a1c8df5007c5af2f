"""The report's headline, cautions and first paragraphs, composed from the comparison."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from hgrpo.evaluation.cautions import first_collapse
from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST
from hgrpo.evaluation.statistics import FEWEST_SEEDS
from hgrpo.report import paragraphs
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import endpoint_phrase
from hgrpo.report.paragraphs import MOST_NAMED
from hgrpo.report.words import (
    capital,
    count_word,
    ends,
    if_several,
    listing,
    opponent,
    percent,
    points,
)

_LESS = ", less than for the A/A twin"


@dataclass(frozen=True)
class Answer:
    """Texts at the top of the page.

    Attributes:
        headline: sentence on collapsed runs and on the arms that differ from the reference.
        sure: a sentence on whether training is significantly better than sampling alone; may be
            "". With too few seeds, it states how large differences by chance are. If no run had a
            success, it explains how to interpret the study.
        cautions: reasons to distrust the comparison, and remedies.
        paragraphs: pairs of heading and sentences.
    """

    headline: str
    sure: str
    cautions: list[str]
    paragraphs: list[tuple[str, list[str]]]


def answer(
    comparison: Comparison, arms: Arms, cautions: Sequence[str] = (), spread: str = ""
) -> Answer:
    """Compose the study's findings.

    Args:
        cautions: additional cautions.
        spread: the sentence of `published_spread`.
    """
    sections = {}
    table = comparison.against_reference
    if len(table) and not _too_few(table):
        differs = f"How certain are the verdicts against {arms.label(arms.reference)}?"
        sections[differs] = paragraphs.on_verdicts(comparison, arms)
    if len(comparison.against_untrained):
        sections["Why compare with sampling alone?"] = paragraphs.on_sampling(comparison, arms)
    if limits := paragraphs.limits(comparison, arms):
        sections["Limits of this study"] = limits
    collapse = _collapse(comparison, arms)
    first = [*collapse[:1], *_mine(comparison, arms), _headline(comparison, arms)]
    return Answer(
        " ".join(map(capital, first)),
        _sure(comparison, arms, spread),
        [*collapse[1:], *_few_seeds(comparison), *cautions],
        [(heading, [capital(text) for text in texts]) for heading, texts in sections.items()],
    )


def _too_few(table: pd.DataFrame) -> bool:
    return int(table["n_seeds"].iloc[0]) < FEWEST_SEEDS


def _mine(comparison: Comparison, arms: Arms) -> list[str]:
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
        return f"There is no comparison with {reference} yet, because it was not run."
    if not len(table):
        alone = f"Only {reference} was trained, so there is nothing to compare."
        for row in comparison.against_untrained.head(1).itertuples():
            than = _sampling(comparison, arms)
            alone += f" Its difference from {than} is {points(row.difference)} points."
        return alone
    if _nothing_won(comparison):
        done = "solved" if comparison.protocol.settings.score == "success" else "earned reward on"
        return f"No arm {done} any test task, so there is nothing to compare."
    measured = f"in {endpoint_phrase(comparison)}"
    is_twin = table["method"].isin(arms.twins)
    twins = table.loc[is_twin, "difference"].abs()
    chance = _twins(table[is_twin])
    if _too_few(table):
        number = int(table["n_seeds"].iloc[0])
        seeds = capital(count_word(number)) + (" seeds" if number > 1 else " seed")
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
        return (
            f"Inconclusive: {compared} cannot be distinguished from {reference} {measured}{chance}."
        )
    parts[0] += f" {measured}"
    unclear = unclear[~unclear["method"].isin(arms.mine)]  # already in the first sentence
    if len(unclear):
        parts.append(f"inconclusive for {_sized(unclear, arms, rest='others')}")
    return f"{'; '.join(parts)}{chance}."


def _twins(twins: pd.DataFrame) -> str:
    moved = [
        f"{points(row.difference)} points{ends(points(row.lower), points(row.upper), ' ({})')}"
        for row in twins.itertuples()
    ]
    name = "the A/A twin differs" if len(moved) == 1 else "A/A twins differ"
    return f"; {name} by {listing(moved)}" if moved else ""


def _tested(comparison: Comparison, arms: Arms, measured: str, chance: float) -> str:
    """Text on the differences of arms under test, which have no gate and are not controls.

    The user's own arms are described elsewhere. For `chance`, see `_sized`.
    """
    table, reference = comparison.against_reference, arms.label(arms.reference)
    gated = {gate.arm for gate in comparison.protocol.settings.gates}
    table = table[~table["method"].isin(arms.mine)]  # already in the first sentence
    tested = table[[not (name in gated or arms.is_control(name)) for name in table["method"]]]
    if tested.empty and arms.mine:  # show the controls, as a scale for the user's arms
        tested = table[~table["method"].isin(arms.twins)]
    if tested.empty:
        only = "your arms" if arms.mine else "controls"
        return f"besides {reference}, only {only} were trained"
    return f"{_sized(tested, arms, chance, 'arms under test')} against {reference} {measured}"


def _sized(rows: pd.DataFrame, arms: Arms, chance: float = 0.0, rest: str = "arms") -> str:
    """List arms with their differences in points. For one or two arms, add the intervals.

    Args:
        chance: largest absolute difference of an A/A twin. Smaller differences are marked.
    """
    if len(rows) > MOST_NAMED:
        less = int((rows["difference"].abs() < chance).sum())
        few = f", {count_word(less)} of them{_LESS[1:]}" if less else ""
        low, high = points(rows["difference"].min()), points(rows["difference"].max())
        return f"{count_word(len(rows))} {rest} ({low} to {high} points{few})"
    names = []
    for row in rows.itertuples():
        interval = ends(points(row.lower), points(row.upper), ", {}") if len(rows) < 3 else ""
        small = _LESS if abs(row.difference) < chance else ""
        names.append(f"{arms.label(row.method)} ({points(row.difference)} points{interval}{small})")
    return listing(names)


def _collapse(comparison: Comparison, arms: Arms) -> list[str]:
    """A sentence on the collapsed runs, then a remedy; empty if no run collapsed.

    Controls are excluded, because their altered credit is expected to hurt.
    """
    tested = comparison.rounds_by_seed.sort_values("round")
    tested = tested[tested["panel"] == TEST]
    sft = tested.loc[tested["method"] == arms.untrained, "success"].mean()
    # If the SFT policy was not evaluated, use the median success of all runs after round 1.
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
            "Is the comparison tuned fairly? A collapse of the reference reflects tuning more than "
            "credit: try a lower training.lr or a larger training.kl.init, for all arms."
        )
    if len(sentences) > MOST_NAMED:
        sentences[1:] = [f"so did {count_word(len(sentences) - 1)} other arms"]
    return [f"{listing(sentences)}{little}.", advice]


def _few_seeds(comparison: Comparison) -> list[str]:
    table = comparison.against_reference
    if table.empty or not 1 < int(table["n_seeds"].iloc[0]) < FEWEST_SEEDS:
        return []
    why = (
        f"Verdicts require at least {count_word(FEWEST_SEEDS)} seeds: with fewer, equal arms would "
        "be declared different too often."
    )
    # Two runs per arm are too few to estimate the spread.
    needed = f" {paragraphs.on_seeds(comparison)}" if table["n_seeds"].iloc[0] > 2 else ""
    return [why + needed]


def _nothing_won(comparison: Comparison) -> bool:
    return not comparison.methods["endpoint"].any()


def _sure(comparison: Comparison, arms: Arms, spread: str) -> str:
    table, compared = comparison.against_untrained, comparison.against_reference
    if _nothing_won(comparison) and len(table):
        return (
            "A small model may not win at all after a few training steps. To compare the arms, "
            "train longer or use an easier game."
        )
    if len(compared) and _too_few(compared) and not _nothing_won(comparison):
        alike = [
            f"{capital(arms.label(name))} differs from {arms.label(arms.reference)} only in its "
            "random numbers."
            for name in compared["method"]
            if name in arms.twins
        ]
        unknown = "With so few seeds, the size of chance differences is unknown."
        return " ".join(filter(None, [*alike, spread])) or unknown
    if table.empty or _too_few(table):
        return ""
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
    share = "all" if number == all_arms else f"{count_word(number)} of"
    return f" in {share} {count_word(all_arms)} arms"


def _sampling(comparison: Comparison, arms: Arms) -> str:
    return opponent(arms, arms.untrained, comparison.best_temperature)
