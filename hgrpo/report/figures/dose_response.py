"""Draws the arms' gains against the correlation of each arm's credit with oracle credit."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.dose_response import ENDPOINT, TRAJECTORIES, responses
from hgrpo.report import style
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import MEASURES, amount, endpoint_phrase, threshold_text
from hgrpo.report.style import MUTED, Drawing
from hgrpo.report.words import if_several, percent

# The points of an arm's runs are spread over this fraction of the range of correlations.
_BREADTH = 0.09
# Column of times -> label.
_UNITS = {"steps": "Steps", "value": "Trajectories"}
_RUN = {"markersize": 4, "linestyle": "none", "alpha": 0.7}


def dose_response(comparison: Comparison, arms: Arms, doses: Mapping[str, float]) -> Drawing | None:
    """Plot endpoint and steps to each threshold by the credit's correlation with oracle credit.

    None if `doses`, from `hgrpo.evaluation.designs.doses`, is empty. The unit is trajectories
    instead of steps if the trajectories per step differ between arms, or if steps are unknown.
    """
    if not doses:
        return None
    table = responses(comparison, doses)
    unit, per_step = _unit(table)
    times = table[table["measure"] == TRAJECTORIES]
    levels = sorted(times["threshold"].unique())
    rows = -(-(1 + len(levels)) // 2)
    figure, axes = style.canvas(rows, 2, height=0.9 + 2.1 * rows)
    first, *others = axes.flat
    score = comparison.protocol.settings.score
    _draw(first, table[table["measure"] == ENDPOINT], "value", arms, doses)
    _title(first, f"Test: {endpoint_phrase(comparison)}")
    style.percent_axis(first.yaxis, MEASURES[score].unit)
    # The vertical axis includes all runs and therefore all means, but possibly not all intervals.
    slowest = times.loc[times["seed"].notna(), unit].max()
    for ax, level in zip(others, levels, strict=False):
        _draw(ax, times[times["threshold"] == level], unit, arms, doses)
        _title(ax, f"{_UNITS[unit]} to {threshold_text(level, score)}")
        ax.set_ylim(0, 1.08 * slowest)
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    for ax in others[len(levels) :]:
        ax.set_visible(False)
    for ax in axes.flat[max(0, len(levels) - 1) : len(levels) + 1]:
        ax.set_xlabel("correlation with the oracle's credit", fontsize=8.5)
    style.legend_below(figure, _handles(arms, bool(len(times))), columns=2)
    return Drawing(
        "dose_response",
        "outcome",
        "How accurate must credit be to pay off?",
        _caption(comparison, arms, doses, per_step),
        _alt(table, unit, comparison, arms),
        figure,
        table,
    )


def _title(ax: Axes, text: str) -> None:
    ax.set_title(style.wrap(text, 24), fontsize=9)


def _unit(table: pd.DataFrame) -> tuple[str, float | None]:
    """Return the column to plot, and the trajectories per step (None for the column `value`)."""
    times = table[table["measure"] == TRAJECTORIES]
    per_step = (times["value"] / times["steps"]).round(6).unique()
    if len(per_step) != 1 or np.isnan(per_step[0]):
        return "value", None
    return "steps", float(per_step[0])


def _draw(
    ax: Axes, table: pd.DataFrame, column: str, arms: Arms, doses: Mapping[str, float]
) -> None:
    """Draw the reference as a line with a band, arms as points with bars, and runs as points."""
    ends = ("lower", "upper") if column == "value" else (f"{column}_lower", f"{column}_upper")
    means, runs = table[table["seed"].isna()], table[table["seed"].notna()]
    reference = means[means["correlation"].isna()].iloc[0]
    colour = arms[arms.reference].colour
    ax.axhline(reference[column], color=colour, linewidth=1.4)
    # A transparent colour keeps the band readable in the light and in the dark theme.
    ax.axhspan(reference[ends[0]], reference[ends[1]], color=colour, alpha=0.15, linewidth=0)
    line = means.dropna(subset="correlation").groupby("correlation")[column].mean()
    ax.plot(line.index, line, color=MUTED, linewidth=1, zorder=1)
    breadth = _BREADTH * (max(doses.values()) - min(doses.values()))
    for name, place in doses.items():
        arm, mine = arms[name], runs[runs["method"] == name]
        shifts = np.linspace(-breadth / 2, breadth / 2, len(mine)) if len(mine) > 1 else [0.0]
        censored = (mine["reached"] == 0).to_numpy()
        for shift, value, is_censored in zip(shifts, mine[column], censored, strict=True):
            marker = {"marker": "^", "markerfacecolor": "none"} if is_censored else {"marker": "."}
            ax.plot(place + shift, value, color=arm.colour, **_RUN, **marker)
        style.interval_dots(
            ax, [place], means[means["method"] == name], arm, columns=(column, *ends), capsize=2
        )
    ax.set_xticks(sorted(set(doses.values())), [f"{x:g}" for x in sorted(set(doses.values()))])
    ax.margins(x=0.08)
    ax.tick_params(labelsize=8)


def _handles(arms: Arms, has_times: bool) -> list[Line2D]:
    reference = arms[arms.reference]
    look = {"color": MUTED, **_RUN}
    handles = [
        Line2D([], [], color=reference.colour, label=reference.label),
        Line2D([], [], color=MUTED, marker="o", linestyle="none", label="arm"),
        Line2D([], [], marker=".", label="one run", **look),
    ]
    if has_times:
        hollow = {"marker": "^", "markerfacecolor": "none", "label": "run that never got there"}
        handles.append(Line2D([], [], **look, **hollow))
    return handles


def _caption(
    comparison: Comparison, arms: Arms, doses: Mapping[str, float], per_step: float | None
) -> str:
    step = f" A step trains on {per_step:,.0f} trajectories." if per_step else ""
    shuffled = (
        " Shuffled credit is at 0: it keeps the trajectory's sum but has no information on single "
        "turns."
        if 0 in doses.values()
        else ""
    )
    seeds = comparison.seeds["seed"]
    bars = (
        f" Bars are {percent(comparison.protocol.level, 0)} intervals: of the endpoint over seeds "
        "and tasks, of times over seeds."
    )
    return (
        "The arms use the oracle's credit, perturbed by a declared amount."
        f"{if_several(seeds, bars)} Times are restricted means in multiples of a round: for a run "
        "that never reaches the threshold, the time is the end of training."
        f"{step}{shuffled} Credit pays off above the line of {arms.label(arms.reference)} in the "
        "first panel, and below it in the others."
        f"{if_several(seeds, ' Verdicts are based on paired differences, not on these intervals.')}"
    )


def _alt(table: pd.DataFrame, unit: str, comparison: Comparison, arms: Arms) -> str:
    score, parts = comparison.protocol.settings.score, []
    means = table[table["seed"].isna()]
    for (measure, threshold), mine in means.groupby(["measure", "threshold"], dropna=False):
        if measure == ENDPOINT:
            head = f"Greedy test play, {endpoint_phrase(comparison)}"
            texts = [amount(row.value, score) for row in mine.itertuples()]
        else:
            head = f"{_UNITS[unit]} to {threshold_text(threshold, score)}"
            texts = [
                f"{getattr(row, unit):,.1f} (by {row.reached:.0f} of {row.n_seeds:.0f} runs)"
                for row in mine.itertuples()
            ]
        places = [
            arms.label(row.method) if np.isnan(row.correlation) else f"{row.correlation:g}"
            for row in mine.itertuples()
        ]
        rows = ", ".join(f"{text} at {x}" for text, x in zip(texts, places, strict=True))
        parts.append(f"{head}, by the credit's correlation with the oracle's: {rows}.")
    return " ".join(parts)
