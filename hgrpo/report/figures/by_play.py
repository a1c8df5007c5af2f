"""Draws learning curves against all that was played, and against what it cost."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST
from hgrpo.report import style
from hgrpo.report.arms import Arm, Arms
from hgrpo.report.endpoint_words import MEASURES, Measure
from hgrpo.report.figures.learning import (
    THIN,
    small_panels,
    thin_remark,
    untrained_line,
    with_start,
)
from hgrpo.report.logs import SUMS
from hgrpo.report.style import MANY, Drawing
from hgrpo.report.words import if_several

# Column of the logs -> title of an axis, and the unit that it counts in.
PLAYED = {
    "trajectories": ("trajectories played, continuations included, thousands", 1e3),
    "replies": ("new replies, thousands", 1e3),
}
SPENT = {
    "tokens": ("tokens read, millions", 1e6),
    "seconds": ("minutes of training, without evaluation", 60),
}
# If an arm's axis would end so many times further out than another's, the axis is logarithmic.
_FAR = 8


def learning_by_play(comparison: Comparison, play: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Draw the endpoint's measure against all trajectories and all new replies; None without logs.

    Thin lines are seeds. With more than `MANY` trained arms, each arm has its own panel, and all
    panels show the trajectories only.
    """
    if play.empty:
        return None
    measure = MEASURES[comparison.protocol.settings.score]
    table = _with_play(with_start(comparison, arms), play)
    runs = _runs_with_play(comparison, play)
    many = len(arms.trained) > MANY
    if many:
        figure = _play_panel_each(table, runs, comparison, arms, measure)
    else:
        figure = _play_together(table, runs, comparison, arms, measure, PLAYED)
    thin = if_several(comparison.seeds["seed"], " Thin lines are single seeds.")
    also = thin_remark(arms) if many else ""
    totals = table.groupby("method", sort=False)[list(PLAYED)].max()
    numbers = "; ".join(
        f"{arms.label(name)} {row.trajectories:,.0f} trajectories, {row.replies:,.0f} new replies"
        for name, row in totals.iterrows()
    )
    return Drawing(
        "learning_by_play",
        "learning",
        "Learning curves against all that was played",
        f"Greedy {measure.name} on the {comparison.n_test} test tasks against all trajectories "
        "played in training: rollouts, the groups that dynamic sampling adds, and continuations "
        "that credit asked for. A continuation is one trajectory, although it starts midway. New "
        f"replies are the finer measure: they leave out turns that were played again.{thin}{also}",
        f"Played in all, per seed: {numbers}.",
        figure,
        table,
    )


def _play_together(
    table: pd.DataFrame,
    runs: pd.DataFrame,
    comparison: Comparison,
    arms: Arms,
    measure: Measure,
    costs: Mapping[str, tuple[str, float]],
) -> Figure:
    """Draw all arms on the same axes, against each column of `costs` (its label and unit)."""
    figure, axes = style.canvas(len(costs), height=5.7, sharey=True)
    for ax, (column, (label, unit)) in zip(axes.flat, costs.items(), strict=True):
        for name in arms.trained:
            _draw_play(ax, table, runs, arms[name], measure, column, unit, markersize=5)
        untrained_line(ax, comparison, arms, measure)
        _play_axis(ax, table, column, unit)
        ax.set_xlabel(label)
        ax.set_ylabel(f"greedy test {measure.name}")
        style.percent_axis(ax.yaxis, measure.unit)
    style.legend_below(figure, axes[0, 0].get_legend_handles_labels()[0])
    return figure


def _play_panel_each(
    table: pd.DataFrame, runs: pd.DataFrame, comparison: Comparison, arms: Arms, measure: Measure
) -> Figure:
    """Draw a small panel for every arm, against trajectories; each also shows the reference."""
    column = "trajectories"
    label, unit = PLAYED[column]
    figure, panels = small_panels(arms)
    for ax, name in panels:
        if arms.has_reference:
            lead = arms[arms.reference]
            _draw_play(ax, table, runs.head(0), lead, measure, column, unit, thin=True)
        _draw_play(ax, table, runs, arms[name], measure, column, unit, markersize=4)
        untrained_line(ax, comparison, arms, measure)
        style.percent_axis(ax.yaxis, measure.unit)
    _play_axis(panels[0][0], table, column, unit)
    figure.supxlabel(label, fontsize=9)
    figure.supylabel(f"greedy {measure.name} on the test panel", fontsize=9)
    return figure


def _draw_play(
    ax: Axes,
    table: pd.DataFrame,
    runs: pd.DataFrame,
    arm: Arm,
    measure: Measure,
    column: str,
    unit: float,
    markersize: float = 0,
    thin: bool = False,
) -> None:
    """Draw an arm's mean over its seeds, and a thin line for each of its `runs` if several."""
    mine, of_runs = (each[each["method"] == arm.name] for each in (table, runs))
    if of_runs["seed"].nunique() > 1:
        for _, run in of_runs.groupby("seed"):
            ax.plot(run[column] / unit, run[measure.column], color=arm.colour, **THIN)
    look = {"linewidth": 0.9} if thin else {"marker": arm.marker, "markersize": markersize}
    x, y = mine[column] / unit, mine[measure.column]
    ax.plot(x, y, color=arm.colour, label=arm.label, **look)


def _play_axis(ax: Axes, table: pd.DataFrame, column: str, unit: float) -> None:
    """Make a horizontal axis from 0 logarithmic beyond its first round, if arms lie far apart."""
    ends = table.groupby("method")[column].max()
    if ends.max() > _FAR * ends.min():
        first = table.loc[table[column] > 0, column].min()
        style.log_axis_from_zero(ax.xaxis, first / unit)


def equal_budget(comparison: Comparison, play: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Draw the endpoint's measure against tokens and time; None without logs."""
    if play.empty:
        return None
    measure = MEASURES[comparison.protocol.settings.score]
    table = _with_play(with_start(comparison, arms), play)
    figure = _play_together(
        table, _runs_with_play(comparison, play), comparison, arms, measure, SPENT
    )
    totals = table.groupby("method")[list(SUMS)].max()
    numbers = "; ".join(
        f"{arms.label(name)} {row.trajectories:.0f} trajectories, {row.tokens / 1e6:.2f} million "
        f"tokens, {row.seconds / 60:.1f} minutes"
        for name, row in totals.iterrows()
    )
    return Drawing(
        "equal_budget",
        "learning",
        f"{measure.name.capitalize()} against what it cost",
        f"Greedy test {measure.name} against tokens and training time"
        f"{if_several(play['seed'], ', means over seeds; thin lines are single seeds')}. "
        "Compare arms at equal cost, not at equal rounds. All play counts: the tokens of a "
        "continuation count as read, with those of the turns before it.",
        f"Total cost: {numbers}.",
        figure,
        table,
    )


def _with_play(table: pd.DataFrame, play: pd.DataFrame) -> pd.DataFrame:
    """Rows of `with_start` with the columns `SUMS`, as means over seeds; 0 in round 0."""
    spent = play.groupby(["method", "round"])[list(SUMS)].mean()
    table = table.join(spent, on=["method", "round"])
    table.loc[table["round"] == 0, list(SUMS)] = 0.0
    return table


def _runs_with_play(comparison: Comparison, play: pd.DataFrame) -> pd.DataFrame:
    """Test rows of single runs, with what each has played when the round ends."""
    runs = comparison.rounds_by_seed
    runs = runs[runs["panel"] == TEST]
    return runs.merge(play, on=["method", "seed", "round"])
