"""Draws learning curves: greedy test success and score by round, trajectories and cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST
from hgrpo.report import style
from hgrpo.report.arms import Arm, Arms
from hgrpo.report.endpoint_words import MEASURES, SCORE, Measure, endpoint_phrase, untrained_level
from hgrpo.report.logs import SUMS
from hgrpo.report.style import MANY, MUTED, Drawing
from hgrpo.report.words import if_several, percent, temperature_name


@dataclass(frozen=True)
class Across:
    """A horizontal axis of learning curves.

    Attributes:
        column: column in the tables of means and of single runs.
        unit: number by which the column is divided, such as 1,000 for trajectories.
    """

    column: str
    label: str
    unit: float = 1


ROUNDS = Across("round", "round")
PLAYED = (
    Across("trajectories", "trajectories played, continuations included, thousands", 1e3),
    Across("replies", "new replies, thousands", 1e3),
)
SPENT = (
    Across("tokens", "tokens read, millions", 1e6),
    Across("seconds", "minutes of training, without evaluation", 60),
)
# A horizontal axis is logarithmic if the arms' last values differ by more than this factor.
_FAR = 8


def learning_curves(comparison: Comparison, arms: Arms, stops: pd.DataFrame) -> Drawing:
    """Plot the endpoint's measure by round, or success and score if `comparison.partial`.

    Each thin line is a seed, with a cross where a run in `stops` (`logs.read_stops`) ended. Bars
    are confidence intervals of the last round. With more than `MANY` trained arms, each arm has a
    separate panel with the endpoint's measure only.
    """
    table, runs = with_start(comparison, arms), single_runs(comparison)
    measures = [MEASURES[comparison.protocol.settings.score]]
    if comparison.partial and len(arms.trained) <= MANY:
        measures += [each for each in MEASURES.values() if each not in measures]
    panels = [(ROUNDS, measure) for measure in measures]
    height = 4.8 if len(measures) == 1 else 3.6 * len(measures)
    figure, drawn = _curves(table, runs, comparison, arms, panels, height)
    for ax, (_, measure), names in drawn:
        _draw_last_intervals(ax, table, [arms[name] for name in names], measure)
        for name in names:
            ended = runs[runs["method"] == name].merge(stops, on=["method", "seed", "round"])
            look = {"color": arms[name].colour, "markersize": 8}
            ax.plot(ended["round"], ended[measure.column], "x", **look)
        ax.set_xticks(sorted(table["round"].unique()))
    several = comparison.seeds["seed"]
    bars = (
        " The bars next to the last round are its "
        f"{percent(comparison.protocol.level, 0)} intervals."
    )
    seeds = if_several(several, " Thin lines are single seeds.")
    seeds += " A cross marks a run ended by a rule." if len(stops) else ""
    score = " The score is 100 times the mean return." if SCORE in measures else ""
    return Drawing(
        "learning_curves",
        "learning",
        "Learning curves",
        f"Greedy {' and '.join(m.name for m in measures)} on the {comparison.n_test} test tasks "
        f"after every round.{seeds} The endpoint is {endpoint_phrase(comparison)}."
        f"{if_several(several, bars)}{score}{_thin_remark(arms)}",
        " ".join(_alt(table, arms, measure) for measure in measures),
        figure,
        table,
    )


def learning_by_play(comparison: Comparison, play: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Plot the endpoint's measure against the total numbers of trajectories and new replies.

    Each thin line is a seed. With more than `MANY` trained arms, each arm has a separate panel,
    against trajectories only. None if there are no logs.
    """
    if play.empty:
        return None
    measure = MEASURES[comparison.protocol.settings.score]
    figure, table = _against(PLAYED, comparison, play, arms, measure)
    thin = if_several(comparison.seeds["seed"], " Thin lines are single seeds.")
    totals = table.groupby("method", sort=False)[["trajectories", "replies"]].max()
    numbers = "; ".join(
        f"{arms.label(name)} {row.trajectories:,.0f} trajectories, {row.replies:,.0f} new replies"
        for name, row in totals.iterrows()
    )
    return Drawing(
        "learning_by_play",
        "learning",
        "Learning curves against trajectories and replies",
        f"Greedy {measure.name} on the {comparison.n_test} test tasks against all trajectories "
        "played in training: rollouts, including additional groups of dynamic sampling, and "
        "continuations for credit. A continuation counts as one trajectory, although it starts "
        "midway. New replies are a finer measure, because they exclude replayed turns."
        f"{thin}{_thin_remark(arms)}",
        f"Total per seed: {numbers}.",
        figure,
        table,
    )


def equal_budget(comparison: Comparison, play: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Plot the endpoint's measure against tokens and time; None if there are no logs.

    With more than `MANY` trained arms, each arm has a separate panel, against tokens only.
    """
    if play.empty:
        return None
    measure = MEASURES[comparison.protocol.settings.score]
    figure, table = _against(SPENT, comparison, play, arms, measure)
    spent = "" if len(arms.trained) > MANY else " and training time"
    totals = table.groupby("method")[list(SUMS)].max()
    numbers = "; ".join(
        f"{arms.label(name)} {row.trajectories:.0f} trajectories, {row.tokens / 1e6:.2f} million "
        f"tokens, {row.seconds / 60:.1f} minutes"
        for name, row in totals.iterrows()
    )
    return Drawing(
        "equal_budget",
        "learning",
        f"{measure.name.capitalize()} against training cost",
        f"Greedy test {measure.name} against tokens{spent}"
        f"{if_several(play['seed'], ', means over seeds; thin lines are single seeds')}. "
        "Compare arms at equal cost instead of equal rounds. Continuations are included, with the "
        f"tokens of the preceding turns in their prompts.{_thin_remark(arms)}",
        f"Total cost: {numbers}.",
        figure,
        table,
    )


def _against(
    costs: Sequence[Across],
    comparison: Comparison,
    play: pd.DataFrame,
    arms: Arms,
    measure: Measure,
) -> tuple[Figure, pd.DataFrame]:
    """Plot a measure against each of `costs`; return the figure and the means over seeds."""
    spent = play.groupby(["method", "round"])[list(SUMS)].mean()
    table = with_start(comparison, arms).join(spent, on=["method", "round"])
    table.loc[table["round"] == 0, list(SUMS)] = 0.0
    runs = single_runs(comparison).merge(play, on=["method", "seed", "round"])
    panels = [(across, measure) for across in costs]
    figure, drawn = _curves(table, runs, comparison, arms, panels, height=5.7)
    for ax, (across, _), _ in drawn:
        ends = table.groupby("method")[across.column].max()
        if ends.max() > _FAR * ends.min():
            first = table.loc[table[across.column] > 0, across.column].min()
            style.log_axis_from_zero(ax.xaxis, first / across.unit)
    return figure, table


Panel = tuple[Across, Measure]


def _curves(
    table: pd.DataFrame,
    runs: pd.DataFrame,
    comparison: Comparison,
    arms: Arms,
    panels: Sequence[Panel],
    height: float,
) -> tuple[Figure, list[tuple[Axes, Panel, list[str]]]]:
    """Plot all arms on the same axes or, with more than `MANY` trained arms, each in a small panel.

    Args:
        table: means over seeds, from `with_start`.
        runs: rows of single seeds.
        panels: what to plot in each axes, from the top. Small panels all plot the first entry.
        height: the figure's height in inches, if all arms are on the same axes.

    Returns:
        The figure, and a list of its axes with the panel and the arms drawn in each.
    """
    many = len(arms.trained) > MANY
    if many:
        figure, small = _small_panels(arms)
        drawn = [(ax, panels[0], [name]) for ax, name in small]
        figure.supxlabel(panels[0][0].label, fontsize=9)
        figure.supylabel(f"greedy {panels[0][1].name} on the test panel", fontsize=9)
    else:
        across, measures = ({panel[k] for panel in panels} for k in (0, 1))
        shared = {"sharex": len(across) == 1, "sharey": len(measures) == 1}
        figure, axes = style.canvas(len(panels), height=height, **shared)
        drawn = [(ax, panel, arms.trained) for ax, panel in zip(axes.flat, panels, strict=True)]
    for ax, (across, measure), names in drawn:
        if many and arms.has_reference:
            lead = table[table["method"] == arms.reference]
            look = {"color": arms[arms.reference].colour, "linewidth": 0.9}
            ax.plot(lead[across.column] / across.unit, lead[measure.column], **look)
        for name in names:
            draw_arm(ax, table, runs, arms[name], measure, across)
        _untrained_line(ax, comparison, arms, measure)
        style.percent_axis(ax.yaxis, measure.unit)
        if not many:
            ax.set(xlabel=across.label, ylabel=f"greedy test {measure.name}")
    if not many:
        style.legend_below(figure, drawn[0][0].get_legend_handles_labels()[0])
    return figure, drawn


def _small_panels(arms: Arms) -> tuple[Figure, list[tuple[Axes, str]]]:
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


def draw_arm(
    ax: Axes,
    table: pd.DataFrame,
    runs: pd.DataFrame,
    arm: Arm,
    measure: Measure,
    across: Across = ROUNDS,
) -> None:
    """Plot an arm's mean over seeds and, if there are several seeds, a thin line for each seed."""
    mine, seeds = (each[each["method"] == arm.name] for each in (table, runs))
    if seeds["seed"].nunique() > 1:
        for _, run in seeds.groupby("seed"):
            look = {"color": arm.colour, "alpha": 0.3, "linewidth": 0.8}
            ax.plot(run[across.column] / across.unit, run[measure.column], **look)
    look = {"color": arm.colour, "marker": arm.marker, "markersize": 4.5, "label": arm.label}
    ax.plot(mine[across.column] / across.unit, mine[measure.column], **look)


def _draw_last_intervals(
    ax: Axes, table: pd.DataFrame, drawn: Sequence[Arm], measure: Measure
) -> None:
    shifts = (np.arange(len(drawn)) - (len(drawn) - 1) / 2) * 0.05 + 0.2
    for shift, arm in zip(shifts, drawn, strict=True):
        last = table[table["method"] == arm.name].iloc[-1]
        ends = last[measure.lower], last[measure.upper]
        ax.vlines(last["round"] + shift, *ends, arm.colour, alpha=0.5, linewidth=2.5)


def _untrained_line(ax: Axes, comparison: Comparison, arms: Arms, measure: Measure) -> None:
    level = untrained_level(comparison, arms, measure.column)
    if level is not None:
        name = f"{arms.label(arms.untrained)}, {temperature_name(comparison.best_temperature)}"
        ax.axhline(level, color=MUTED, linewidth=1.2, linestyle=":", label=name)


def with_start(comparison: Comparison, arms: Arms) -> pd.DataFrame:
    """Test-panel rows of the trained arms, each preceded by the SFT policy's row as round 0."""
    table = comparison.rounds[comparison.rounds["panel"] == TEST]
    start = table[table["method"] == arms.untrained]
    parts = []
    for name in arms.trained:
        mine = table[table["method"] == name]
        if len(start) and mine["round"].min() > 0:
            parts.append(start.assign(method=name, round=0))
        parts.append(mine)
    return pd.concat(parts, ignore_index=True)


def single_runs(comparison: Comparison) -> pd.DataFrame:
    """Test-panel rows of `Comparison.rounds_by_seed`."""
    return comparison.rounds_by_seed[comparison.rounds_by_seed["panel"] == TEST]


def _thin_remark(arms: Arms) -> str:
    if len(arms.trained) <= MANY or not arms.has_reference:
        return ""
    return f" Every panel also has a thin line for {arms.label(arms.reference)}."


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
