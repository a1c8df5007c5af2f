"""Draws the main effects of a factorial design, and interactions with the credit assigner."""

from collections.abc import Hashable

import pandas as pd

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.designs import CREDIT, Factorial
from hgrpo.report.endpoint_words import endpoint_phrase
from hgrpo.report.style import Drawing, canvas, difference_intervals
from hgrpo.report.words import if_several, percent, points, with_interval

NAMES = {
    CREDIT: "credit",
    "rollouts_per_task": "K",
    "lr": "learning rate",
    "dead_groups": "dead-group guard",
}
PANELS = {"main": "Main effects", "interaction": "Interactions with the credit assigner"}
LOOK = ("#3a86c8", "o")  # colour and marker of every effect


def factorial(
    comparison: Comparison, effects: pd.DataFrame, design: Factorial | None
) -> Drawing | None:
    """Plot main effects and, in a panel below, interactions with the credit assigner.

    None if `design` is None.
    """
    if design is None:
        return None
    table = effects.assign(label=[effect_label(effect, design) for effect in effects["effect"]])
    parts = [table[table["kind"] == kind] for kind in PANELS if (table["kind"] == kind).any()]
    sizes = [len(part) for part in parts]
    figure, axes = canvas(
        len(parts),
        height=0.8 + 0.45 * sum(sizes) + 0.4 * len(parts),
        grid="x",
        sharex=True,
        height_ratios=[size + 0.4 for size in sizes],
    )
    for ax, part in zip(axes.flat, parts, strict=True):
        texts = part["difference"].map(points)
        difference_intervals(ax, part, part["label"], texts, [LOOK] * len(part))
        ax.set_title(PANELS[part["kind"].iloc[0]])
    axes.flat[-1].set_xlabel(f"points of {endpoint_phrase(comparison)}")
    return Drawing(
        "factorial",
        "outcome",
        "What makes the difference?",
        _caption(comparison, table),
        _alt(table),
        figure,
        table,
    )


def effect_label(effect: str, design: Factorial) -> str:
    """Two lines for a main effect (`K: 4`, `instead of 8`); `credit × K` for an interaction."""
    factors = effect.split(" x ")
    if len(factors) > 1:
        return " \u00d7 ".join(NAMES[name] for name in factors)
    level, other = (_level(effect, level) for level in design.factors[effect])
    return f"{NAMES[effect]}: {other}\ninstead of {level}"


def _level(factor: str, level: Hashable) -> str:
    if factor == "dead_groups":
        return {"skip": "zero advantages", "skip_equal_returns": "on", "keep": "off"}[level]
    return f"{level:g}" if isinstance(level, float) else str(level)


def _caption(comparison: Comparison, table: pd.DataFrame) -> str:
    interval = f", with its {percent(comparison.protocol.level, 0)} interval"
    caption = (
        "A main effect is the mean of all arms at one level minus the mean of all arms at the "
        f"other, paired by seed and task, in {endpoint_phrase(comparison)}"
        f"{if_several(comparison.seeds['seed'], interval)}. A filled point is significant after "
        "Holm's correction over all rows."
    )
    if (table["kind"] == "interaction").any():
        caption += (
            " An interaction is half the change in the credit assigner's effect when the other "
            "factor changes. It is zero if the assigner has the same effect at both levels."
        )
    return f"{caption} tables/factorial.csv lists every cell."


def _alt(table: pd.DataFrame) -> str:
    rows = [
        f"{row.label} {with_interval(row.difference, row.lower, row.upper)}"
        for row in table.itertuples()
    ]
    return f"Differences in points: {'; '.join(rows)}.".replace("\n", " ")
