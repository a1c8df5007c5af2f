"""Draws the share of each arm's runs that have reached a score, by all trajectories played."""

import numpy as np

from hgrpo.evaluation import thresholds as to_threshold
from hgrpo.evaluation.comparison import Comparison
from hgrpo.report import style
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import MEASURES, threshold_text
from hgrpo.report.style import Drawing
from hgrpo.report.words import if_several

# Lines of arms whose shares are equal are drawn this far apart.
_APART = 0.012


def thresholds(comparison: Comparison, arms: Arms) -> Drawing | None:
    """Draw one panel per threshold, with a step curve per trained arm; None without trained arms.

    The curve is 1 minus Kaplan and Meier's estimate, and ends where the first run's training ends.
    """
    if comparison.first_rounds.empty:
        return None
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
    apart = if_several(comparison.seeds["seed"], " With few seeds the steps are large.")
    return Drawing(
        "thresholds",
        "learning",
        "Trajectories to a threshold",
        f"Share of each arm's runs whose greedy test {MEASURES[score]} has reached the threshold "
        f"in an evaluation so far (Kaplan and Meier's estimate), by all trajectories played: a "
        f"continuation that credit asked for is one.{apart} Equal lines are drawn "
        "slightly apart. Verdicts do not use this.",
        _said(comparison, arms),
        figure,
        table,
    )


def _said(comparison: Comparison, arms: Arms) -> str:
    table, score = comparison.thresholds, comparison.protocol.settings.score
    parts = [
        f"{threshold_text(threshold, score)}: "
        + ", ".join(
            f"{arms.label(row.method)} {row.reached} of {row.n_seeds}" for row in mine.itertuples()
        )
        for threshold, mine in table.groupby("threshold", sort=False)
    ]
    return f"Runs that reached each threshold. {'; '.join(parts)}."
