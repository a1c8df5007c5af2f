"""Draws the share of each arm's runs that have reached a score, by number of trajectories."""

import numpy as np
import pandas as pd

from hgrpo.evaluation import thresholds as to_threshold
from hgrpo.evaluation.comparison import Comparison
from hgrpo.report import style, words
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import MEASURES, threshold_text
from hgrpo.report.style import Drawing

# Offset between the lines of arms with equal shares.
_APART = 0.012
_TITLE = "Trajectories to a threshold"


def thresholds(comparison: Comparison, play: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Plot the share of runs that reached each threshold, one panel per threshold.

    Each trained arm is a step curve, 1 minus the Kaplan-Meier estimate, up to the end of the
    shortest run. If there is no threshold, the figure only states the reason. None if there are no
    logs.
    """
    if play.empty or not arms.trained:
        return None
    if comparison.first_rounds.empty:
        return _without_threshold(comparison, arms)
    table = to_threshold.curves(comparison.first_rounds)
    levels, score = table["threshold"].unique(), comparison.protocol.settings.score
    figure, axes = style.canvas(len(levels), height=0.8 + 1.15 * len(levels), sharex=True)
    shifts = (np.arange(len(arms.trained)) - (len(arms.trained) - 1) / 2) * _APART
    for ax, level in zip(axes.flat, levels, strict=True):
        panel = table[table["threshold"] == level]
        for shift, name in zip(shifts, arms.trained, strict=True):
            arm, mine = arms[name], panel[panel["method"] == name]
            look = arm.look | {"marker": "", "label": arm.label, "drawstyle": "steps-post"}
            ax.plot(mine["trajectories"] / 1e3, mine["share_reached"] + shift, **look)
        ax.set_title(f"{threshold_text(level, score)} or more", fontsize=9.5)
        ax.set_ylim(-0.08, 1.08)
        style.percent_axis(ax.yaxis)
    axes[-1, 0].set_xlabel("trajectories played, thousands")
    figure.supylabel("share of runs that got there", fontsize=9)
    style.legend_below(figure, axes[0, 0].get_legend_handles_labels()[0])
    apart = words.if_several(comparison.seeds["seed"], " With few seeds the steps are large.")
    return Drawing(
        "thresholds",
        "learning",
        _TITLE,
        f"Share of each arm's runs whose greedy test {MEASURES[score].name} has reached the "
        f"threshold (Kaplan-Meier estimate), by number of trajectories, including continuations "
        f"for credit.{apart} Equal lines are drawn slightly apart. No verdict is based on this "
        "figure.",
        _alt(comparison, arms),
        figure,
        table,
    )


def _without_threshold(comparison: Comparison, arms: Arms) -> Drawing:
    score = comparison.protocol.settings.score
    names = [arms.untrained, arms.reference if arms.has_reference else None]
    scored = words.listing([arms.label(name) for name in names if name])
    zero = threshold_text(0, score)
    why = (
        f"The study declares no thresholds, so they are derived from the test "
        f"{MEASURES[score].name} of {scored} after the last round, rounded to whole per "
        f"cent. The result is {zero}, which every run reaches at once."
    )
    text = style.wrap(f"There is no threshold above {zero}.", 40)
    empty = pd.DataFrame(columns=["threshold", "method", "trajectories", "share_reached"])
    return Drawing("thresholds", "learning", _TITLE, why, text, style.notice(text), empty)


def _alt(comparison: Comparison, arms: Arms) -> str:
    table, score = comparison.thresholds, comparison.protocol.settings.score
    parts = [
        f"{threshold_text(threshold, score)}: "
        + ", ".join(
            f"{arms.label(row.method)} {row.reached} of {row.n_seeds}" for row in mine.itertuples()
        )
        for threshold, mine in table.groupby("threshold", sort=False)
    ]
    return f"Runs that reached each threshold. {'; '.join(parts)}."
