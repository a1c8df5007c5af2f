"""Draws learning curves: greedy test success and score by round."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST
from hgrpo.report import style
from hgrpo.report.arms import Arm, Arms
from hgrpo.report.endpoint_words import MEASURES, SCORE, Measure, endpoint_phrase, untrained_level
from hgrpo.report.style import INK, MANY, MUTED, Drawing
from hgrpo.report.words import if_several, percent, temperature_name

# How the line of a single seed is drawn.
THIN = {"alpha": 0.3, "linewidth": 0.8}


def learning_curves(comparison: Comparison, arms: Arms, stops: pd.DataFrame) -> Drawing:
    """Draw the endpoint's measure by round; draw success and score if `comparison.partial`.

    Thin lines are seeds, and a cross ends those of `stops` (`logs.read_stops`); bars are intervals
    of the last round. With more than `MANY` trained arms,
    each arm has its own panel, and all panels show the endpoint's measure only.
    """
    table = with_start(comparison, arms)
    measures, apart = [MEASURES[comparison.protocol.settings.score]], ""
    if len(arms.trained) > MANY:
        figure = _panel_each(table, comparison, arms, measures[0], stops)
        apart = thin_remark(arms)
    else:
        others = [each for each in MEASURES.values() if each not in measures]
        measures += others if comparison.partial else []
        figure = _together(table, comparison, arms, measures, stops)
    several = comparison.seeds["seed"]
    bars = (
        " The bars beside the last round are its "
        f"{percent(comparison.protocol.level, 0)} intervals."
    )
    seeds = if_several(several, " Thin lines are single seeds.")
    seeds += " A cross marks where a rule has ended a run." if len(stops) else ""
    score = " The score is 100 times the mean return." if SCORE in measures else ""
    return Drawing(
        "learning_curves",
        "learning",
        "Learning curves",
        f"Greedy {' and '.join(m.name for m in measures)} on the {comparison.n_test} test tasks "
        f"after every round.{seeds} The endpoint is {endpoint_phrase(comparison)}."
        f"{if_several(several, bars)}{score}{apart}",
        " ".join(_alt(table, arms, measure) for measure in measures),
        figure,
        table,
    )


def _together(
    table: pd.DataFrame,
    comparison: Comparison,
    arms: Arms,
    measures: Sequence[Measure],
    stops: pd.DataFrame,
) -> Figure:
    """Draw all arms on the same axes, with names at the line ends, or below if crowded."""
    height = 4.4 if len(measures) == 1 else 3.6 * len(measures)
    figure, axes = style.canvas(len(measures), height=height, sharex=True)
    shifts = (np.arange(len(arms.trained)) - (len(arms.trained) - 1) / 2) * 0.05 + 0.2
    tight = False
    for ax, measure in zip(axes.flat, measures, strict=True):
        ends = []
        for shift, name in zip(shifts, arms.trained, strict=True):
            arm = arms[name]
            last = _draw_arm(ax, table, comparison, arm, measure, shift, markersize=5)
            _draw_stops(ax, comparison, stops, arm, measure)
            ends.append((style.wrap(arm.label), last["round"], last[measure.column], arm.colour))
        ends += untrained_line(ax, comparison, arms, measure)
        ax.set_ylabel(f"greedy {measure.name} on the test panel")
        style.percent_axis(ax.yaxis, measure.unit)
        tight = style.crowded([text for text, *_ in ends])
        if not tight:
            style.label_ends(ax, ends)
    axes[0, 0].set_xticks(sorted(table["round"].unique()))
    axes[-1, 0].set_xlabel("round")
    if tight:
        style.legend_below(figure, axes[0, 0].get_legend_handles_labels()[0])
    return figure


def thin_remark(arms: Arms) -> str:
    """What the caption of small panels says of the line that all of them share."""
    if not arms.has_reference:
        return ""
    return f" {arms.label(arms.reference)} is drawn thin in every panel."


def _panel_each(
    table: pd.DataFrame,
    comparison: Comparison,
    arms: Arms,
    measure: Measure,
    stops: pd.DataFrame,
) -> Figure:
    """Draw a small panel for every arm; each panel also shows the reference and the SFT policy."""
    figure, panels = small_panels(arms)
    reference = table[table["method"] == arms.reference]
    heights = []
    for ax, name in panels:
        arm = arms[name]
        if arms.has_reference:
            colour = arms[arms.reference].colour
            ax.plot(reference["round"], reference[measure.column], color=colour, linewidth=0.9)
        last = _draw_arm(ax, table, comparison, arm, measure, shift=0.2, markersize=4)
        _draw_stops(ax, comparison, stops, arm, measure)
        untrained_line(ax, comparison, arms, measure)
        heights.append(last[measure.column])
        style.percent_axis(ax.yaxis, measure.unit)
    # The panels share a scale, which only the last of them settles.
    for (ax, _), end in zip(panels, heights, strict=True):
        style.label_ends(ax, [(f"{100 * end:.0f}{measure.unit}", 0, end, INK)])
    panels[0][0].set_xticks(sorted(table["round"].unique()))
    figure.supxlabel("round", fontsize=9)
    figure.supylabel(f"greedy {measure.name} on the test panel", fontsize=9)
    return figure


def small_panels(arms: Arms) -> tuple[Figure, list[tuple[Axes, str]]]:
    """A figure with a small titled panel for each trained arm, and the panels with their arms."""
    rows = -(-len(arms.trained) // 2)
    titles = [style.wrap(arms.label(name), 34) for name in arms.trained]
    lines = max(title.count("\n") + 1 for title in titles)
    figure, axes = style.canvas(
        rows, 2, height=rows * (0.85 + 0.13 * lines), sharex=True, sharey=True
    )
    for ax, name, title in zip(axes.flat, arms.trained, titles, strict=False):
        ax.set_title(title, fontsize=8.5, fontweight="normal", color=arms[name].colour)
        ax.tick_params(labelsize=8)
    for ax in axes.flat[len(titles) :]:
        ax.set_axis_off()
    return figure, list(zip(axes.flat, arms.trained, strict=False))


def _draw_arm(
    ax: Axes,
    table: pd.DataFrame,
    comparison: Comparison,
    arm: Arm,
    measure: Measure,
    shift: float,
    markersize: float,
) -> pd.Series:
    """Draw an arm's line over the rounds, and a thin line per seed; return the last round's row.

    The last round's interval is drawn `shift` rounds to the right of the dot.
    """
    mine = table[table["method"] == arm.name]
    runs = comparison.rounds_by_seed
    runs = runs[(runs["method"] == arm.name) & (runs["panel"] == TEST)]
    if runs["seed"].nunique() > 1:
        for _, run in runs.groupby("seed"):
            values = run[measure.column]
            ax.plot(run["round"], values, color=arm.colour, **THIN)
    look = {"color": arm.colour, "marker": arm.marker, "markersize": markersize}
    ax.plot(mine["round"], mine[measure.column], label=arm.label, **look)
    last = mine.iloc[-1]
    ends = last[measure.lower], last[measure.upper]
    ax.vlines(last["round"] + shift, *ends, arm.colour, alpha=0.5, linewidth=2.5)
    return last


def _draw_stops(
    ax: Axes, comparison: Comparison, stops: pd.DataFrame, arm: Arm, measure: Measure
) -> None:
    """Draw a cross on the line of each seed that a rule has ended, at the round of that."""
    runs = comparison.rounds_by_seed
    runs = runs[(runs["method"] == arm.name) & (runs["panel"] == TEST)]
    ended = runs.merge(stops[stops["method"] == arm.name], on=["method", "seed", "round"])
    ax.plot(ended["round"], ended[measure.column], "x", color=arm.colour, markersize=8)


def with_start(comparison: Comparison, arms: Arms) -> pd.DataFrame:
    """Test rows of the trained arms; the SFT policy's row comes first in each arm, as round 0."""
    table = comparison.rounds[comparison.rounds["panel"] == TEST]
    start = table[table["method"] == arms.untrained]
    parts = []
    for name in arms.trained:
        mine = table[table["method"] == name]
        if len(start) and mine["round"].min() > 0:
            parts.append(start.assign(method=name, round=0))
        parts.append(mine)
    return pd.concat(parts, ignore_index=True)


def untrained_line(ax: Axes, comparison: Comparison, arms: Arms, measure: Measure) -> list:
    """Draw a line at the SFT policy's best-temperature result; return its `label_ends` entries."""
    level = untrained_level(comparison, arms, measure.column)
    if level is None:
        return []
    name = f"{arms.label(arms.untrained)},\n{temperature_name(comparison.best_temperature)}"
    ax.axhline(level, color=MUTED, linewidth=1.2, linestyle=":", label=name.replace("\n", " "))
    return [(name, 0, level, MUTED)]


def _alt(table: pd.DataFrame, arms: Arms, measure: Measure) -> str:
    lines = []
    for name in arms.trained:
        mine = table[table["method"] == name].iloc[[0, -1]]
        ends = [
            f"{100 * value:.1f}{measure.unit} at round {number}"
            for number, value in zip(mine["round"], mine[measure.column], strict=True)
        ]
        lines.append(f"{arms.label(name)} from {' to '.join(ends)}")
    return f"Greedy test {measure.name}: {'; '.join(lines)}."
