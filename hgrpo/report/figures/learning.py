"""Figures of learning: greedy test success and score by round, by play, and by other cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST
from hgrpo.evaluation.settings import Score
from hgrpo.report import style
from hgrpo.report.arms import Arm, Arms
from hgrpo.report.endpoint_words import endpoint_phrase
from hgrpo.report.logs import SUMS
from hgrpo.report.style import INK, MANY, MUTED, Drawing
from hgrpo.report.words import if_several, percent, temperature_name

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
_THIN = {"alpha": 0.3, "linewidth": 0.8}


@dataclass(frozen=True)
class Measure:
    """A quantity that a learning curve shows, with its columns in `Comparison.rounds`."""

    column: str
    lower: str
    upper: str
    name: str
    unit: str

    @property
    def columns(self) -> tuple[str, str, str]:
        """The columns of the quantity and of the ends of its interval."""
        return self.column, self.lower, self.upper


SUCCESS = Measure("success", "lower", "upper", "success", " %")
SCORE = Measure("mean_return", "return_lower", "return_upper", "score", "")
MEASURES: dict[Score, Measure] = {"success": SUCCESS, "return": SCORE}


def learning_curves(comparison: Comparison, arms: Arms, stops: pd.DataFrame) -> Drawing:
    """Draw the endpoint's measure by round; draw success and score if `comparison.partial`.

    Thin lines are seeds, and a cross ends those of `stops` (`logs.read_stops`); bars are intervals
    of the last round. With more than `MANY` trained arms,
    each arm has its own panel, and all panels show the endpoint's measure only.
    """
    table = _with_start(comparison, arms)
    measures, apart = [MEASURES[comparison.protocol.settings.score]], ""
    if len(arms.trained) > MANY:
        figure = _panel_each(table, comparison, arms, measures[0], stops)
        apart = _thin(arms)
    else:
        others = [each for each in MEASURES.values() if each not in measures]
        measures += others if comparison.partial else []
        figure = _together(table, comparison, arms, measures, stops)
    seeds = if_several(comparison.seeds["seed"], " Thin lines are single seeds.")
    seeds += " A cross marks where a rule has ended a run." if len(stops) else ""
    score = " The score is 100 times the mean return." if SCORE in measures else ""
    return Drawing(
        "learning_curves",
        "learning",
        "Learning curves",
        f"Greedy {' and '.join(m.name for m in measures)} on the {comparison.n_test} test tasks "
        f"after every round.{seeds} The endpoint is {endpoint_phrase(comparison)}. The bars "
        f"beside the last round are its {percent(comparison.protocol.level, 0)} "
        f"intervals.{score}{apart}",
        " ".join(_said(table, arms, measure) for measure in measures),
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
        ends += _untrained_line(ax, comparison, arms, measure)
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


def _thin(arms: Arms) -> str:
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
    figure, panels = _panels(arms)
    reference = table[table["method"] == arms.reference]
    for ax, name in panels:
        arm = arms[name]
        if arms.has_reference:
            own = arms[arms.reference].colour
            ax.plot(reference["round"], reference[measure.column], color=own, linewidth=0.9)
        last = _draw_arm(ax, table, comparison, arm, measure, shift=0.2, markersize=4)
        _draw_stops(ax, comparison, stops, arm, measure)
        _untrained_line(ax, comparison, arms, measure)
        end = last[measure.column]
        style.label_ends(ax, [(f"{100 * end:.0f}{measure.unit}", 0, end, INK)])
        style.percent_axis(ax.yaxis, measure.unit)
    panels[0][0].set_xticks(sorted(table["round"].unique()))
    figure.supxlabel("round", fontsize=9)
    figure.supylabel(f"greedy {measure.name} on the test panel", fontsize=9)
    return figure


def _panels(arms: Arms) -> tuple[Figure, list[tuple[Axes, str]]]:
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
            ax.plot(run["round"], values, color=arm.colour, **_THIN)
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


def learning_by_play(comparison: Comparison, play: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Draw the endpoint's measure against all trajectories and all new replies; None without logs.

    Thin lines are seeds. With more than `MANY` trained arms, each arm has its own panel, and all
    panels show the trajectories only.
    """
    if play.empty:
        return None
    measure = MEASURES[comparison.protocol.settings.score]
    table = _with_play(_with_start(comparison, arms), play)
    runs = _runs_with_play(comparison, play)
    many = len(arms.trained) > MANY
    if many:
        figure = _play_panel_each(table, runs, comparison, arms, measure)
    else:
        figure = _play_together(table, runs, comparison, arms, measure, PLAYED)
    thin = if_several(comparison.seeds["seed"], " Thin lines are single seeds.")
    also = _thin(arms) if many else ""
    totals = table.groupby("method", sort=False)[list(PLAYED)].max()
    said = "; ".join(
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
        f"Played in all, per seed: {said}.",
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
        _untrained_line(ax, comparison, arms, measure)
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
    figure, panels = _panels(arms)
    for ax, name in panels:
        if arms.has_reference:
            lead = arms[arms.reference]
            _draw_play(ax, table, runs.head(0), lead, measure, column, unit, thin=True)
        _draw_play(ax, table, runs, arms[name], measure, column, unit, markersize=4)
        _untrained_line(ax, comparison, arms, measure)
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
    mine, own = (each[each["method"] == arm.name] for each in (table, runs))
    if own["seed"].nunique() > 1:
        for _, run in own.groupby("seed"):
            ax.plot(run[column] / unit, run[measure.column], color=arm.colour, **_THIN)
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
    table = _with_play(_with_start(comparison, arms), play)
    figure = _play_together(
        table, _runs_with_play(comparison, play), comparison, arms, measure, SPENT
    )
    totals = table.groupby("method")[list(SUMS)].max()
    said = "; ".join(
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
        f"Total cost: {said}.",
        figure,
        table,
    )


def _with_play(table: pd.DataFrame, play: pd.DataFrame) -> pd.DataFrame:
    """Rows of `_with_start` with the columns `SUMS`, as means over seeds; 0 in round 0."""
    spent = play.groupby(["method", "round"])[list(SUMS)].mean()
    table = table.join(spent, on=["method", "round"])
    table.loc[table["round"] == 0, list(SUMS)] = 0.0
    return table


def _runs_with_play(comparison: Comparison, play: pd.DataFrame) -> pd.DataFrame:
    """Test rows of single runs, with what each has played when the round ends."""
    runs = comparison.rounds_by_seed
    runs = runs[runs["panel"] == TEST]
    return runs.merge(play, on=["method", "seed", "round"])


def _with_start(comparison: Comparison, arms: Arms) -> pd.DataFrame:
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


def _untrained_line(ax: Axes, comparison: Comparison, arms: Arms, measure: Measure) -> list:
    """Draw a line at the SFT policy's best-temperature result; return its `label_ends` entries."""
    level = untrained_level(comparison, arms, measure.column)
    if level is None:
        return []
    name = f"{arms.label(arms.untrained)},\n{temperature_name(comparison.best_temperature)}"
    ax.axhline(level, color=MUTED, linewidth=1.2, linestyle=":", label=name.replace("\n", " "))
    return [(name, 0, level, MUTED)]


def untrained_level(comparison: Comparison, arms: Arms, column: str = "success") -> float | None:
    """SFT policy's test success (or `column`) at its best temperature; None without an SFT arm."""
    rows = comparison.methods
    rows = rows[
        (rows["method"] == arms.untrained) & (rows["temperature"] == comparison.best_temperature)
    ]
    return rows[column].iloc[0] if len(rows) else None


def _said(table: pd.DataFrame, arms: Arms, measure: Measure) -> str:
    lines = []
    for name in arms.trained:
        mine = table[table["method"] == name].iloc[[0, -1]]
        ends = [
            f"{100 * value:.1f}{measure.unit} at round {number}"
            for number, value in zip(mine["round"], mine[measure.column], strict=True)
        ]
        lines.append(f"{arms.label(name)} from {' to '.join(ends)}")
    return f"Greedy test {measure.name}: {'; '.join(lines)}."
