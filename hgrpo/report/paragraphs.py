"""Writes the paragraphs below the first table, on verdicts, on sampling, and on limits."""

import numpy as np
import pandas as pd

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.power import MOST_SEEDS
from hgrpo.evaluation.statistics import DECIDED
from hgrpo.report.arms import Arms
from hgrpo.report.words import count_word, listing, temperature_name

MOST_NAMED = 5  # maximum number of arms listed in a sentence
_NO_SPREAD = "all runs of an arm have the same score, so the spread between runs is unknown"


def on_verdicts(comparison: Comparison, arms: Arms) -> list[str]:
    """Sentences on the certainty and power of the comparisons with the reference."""
    table = comparison.against_reference
    open_rows = table[table["verdict"] == "inconclusive"]
    sentences = []
    if len(open_rows) < len(table) > 1:
        sentences.append(
            "Verdicts of better or worse are significant after Holm's correction over "
            f"{count_word(len(table))} comparisons."
        )
    sentences += _repeats(table, arms)
    if len(open_rows):
        sentences.append(_detectable(open_rows))
    sentences.append(on_seeds(comparison))
    return sentences + _corrected(open_rows, arms)


def _repeats(table: pd.DataFrame, arms: Arms) -> list[str]:
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
        f"If the true differences equal the estimates, a repeat of this study gives the same "
        f"verdict for {cases} out of 100 repeats. Significant estimates tend to be too large, so "
        "expect fewer."
    ]


def _detectable(open_rows: pd.DataFrame) -> str:
    known = open_rows["minimum_detectable_effect"].dropna()
    if known.empty:
        return (
            "Inconclusive does not mean equal. The minimum detectable effect cannot be estimated, "
            f"because {_NO_SPREAD}."
        )
    seeds = int(open_rows["n_seeds"].iloc[0])
    low, high = known.min(), known.max()
    ends_of_size = [f"{100 * low:.1f}", f"{100 * high:.1f}" if np.isfinite(high) else "over 100"]
    size = f"only a difference of about {' to '.join(dict.fromkeys(ends_of_size))} points"
    size = size if np.isfinite(low) else "no possible difference"
    return (
        f"Inconclusive does not mean equal: with {count_word(seeds)} seeds and "
        f"{open_rows['n_tasks'].iloc[0]} tasks, {size} would have been detected with 80 % power "
        "after the correction."
    )


def on_seeds(comparison: Comparison) -> str:
    """A sentence on the number of seeds required to detect differences between arms."""
    table = comparison.seeds_needed
    if table.empty:
        return f"The required number of seeds cannot be estimated, because {_NO_SPREAD}."
    parts = []
    for size, seeds in zip(table["difference"], table["seeds"], strict=True):
        number = f"more than {MOST_SEEDS}" if pd.isna(seeds) else f"{seeds:.0f}"
        parts.append(f"{100 * size:g} points{'' if parts else ' require'} {number}")
    parts[0] += " seeds"
    beyond = [f"{100 * size:g}" for size in table.loc[table["seeds"].isna(), "difference"]]
    more = f" For {listing(beyond)} points, more tasks would help more than more seeds."
    more *= bool(beyond)
    return (
        f"From the spread of these runs, as a rough estimate, {listing(parts)} (for the same "
        f"tasks, power and correction).{more}"
    )


def _corrected(open_rows: pd.DataFrame, arms: Arms) -> list[str]:
    outside = open_rows[(open_rows["lower"] > 0) | (open_rows["upper"] < 0)]
    if outside.empty:
        return []
    labels = [arms.label(name) for name in outside["method"]]
    names = listing(labels) if len(labels) <= MOST_NAMED else f"{count_word(len(labels))} arms"
    return [
        f"The interval of {names} excludes zero. Among several comparisons this can happen by "
        "chance, so the verdict is inconclusive after Holm's correction."
    ]


def on_sampling(comparison: Comparison, arms: Arms) -> list[str]:
    """Sentences on the comparisons with the SFT policy at its best temperature."""
    table, best = comparison.against_untrained, temperature_name(comparison.best_temperature)
    alone = comparison.methods["method"] == comparison.protocol.untrained
    several = comparison.methods.loc[alone, "temperature"].nunique() > 1
    how = "plays best on validation" if several else "is played"
    open_rows = table[table["verdict"] == "inconclusive"]
    sentences = [
        f"Sampling a policy at another temperature can raise its success without any learning. "
        f"Trained arms therefore have to beat {arms.label(arms.untrained)}, the initial policy of "
        f"all arms, at the temperature at which it {how}: {best}.",
    ]
    if len(open_rows):
        sentences.append(
            "If this is inconclusive although the training reward rose, the policy may have become "
            "more deterministic without learning anything new."
        )
    return sentences + _corrected(open_rows, arms)


def limits(comparison: Comparison, arms: Arms) -> list[str]:
    """Sentences on the limits of the study; empty if no arm is trained."""
    table = comparison.methods
    table = table[table["method"] != comparison.protocol.untrained]
    sentences = []
    if not len(table):
        return sentences
    seeds = int(table["n_seeds"].max())
    if seeds == 1:
        sentences.append(
            "Only one seed was trained. The spread between seeds is unknown, so there are no "
            "intervals, no verdicts, and no estimate of the required number of seeds."
        )
    elif len(comparison.against_reference) and comparison.seeds_needed.empty:
        sentences.append(
            f"The {count_word(seeds)} seeds show no spread, so intervals reflect only the sampling "
            "of test tasks, not of seeds."
        )
    sentences.append(
        "Every arm starts from the same supervised policy. The results may not generalise to other "
        "policies, models or environments."
    )
    controls = [arm.label for arm in arms.by_name.values() if arm.credit.is_control]
    if controls:
        verb = "is a control" if len(controls) == 1 else "are controls"
        sentences.append(
            f"{listing(controls)} {verb} with altered credit. For a credit assigner that is not "
            "better than these, there is no evidence that its credit helps."
        )
    return sentences
