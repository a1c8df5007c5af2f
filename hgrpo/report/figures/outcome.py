"""Draws figures of results: paired differences, SFT temperatures, success by task type."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST, VALIDATION
from hgrpo.evaluation.statistics import FEWEST_SEEDS
from hgrpo.report import style
from hgrpo.report.arms import REFERENCE_COLOUR, Arms
from hgrpo.report.endpoint_words import MEASURES, endpoint_phrase
from hgrpo.report.figures.credit import write_in_cell
from hgrpo.report.style import MANY, MUTED, Drawing
from hgrpo.report.words import if_several, opponent, percent, with_interval


def forest(comparison: Comparison, arms: Arms) -> Drawing | None:
    """Plot paired differences from the reference and from the SFT policy, with intervals.

    With one seed there are no verdicts and no marks of single seeds.
    """
    families = [comparison.against_reference, comparison.against_untrained]
    families = [
        table.sort_values("difference", ascending=False, kind="stable")
        for table in families
        if len(table)
    ]
    if not families:
        return None
    sizes = [len(table) for table in families]
    figure, axes = style.canvas(
        len(families),
        height=0.9 + 0.42 * sum(sizes) + 0.5 * len(families),
        grid="x",
        height_ratios=[size + 0.6 for size in sizes],
    )
    several = if_several(comparison.seeds["seed"], "several")
    runs = comparison.seeds.set_index(["method", "temperature", "seed"])["endpoint"].sort_index()
    measured = endpoint_phrase(comparison)
    for ax, table in zip(axes.flat, families, strict=True):
        drawn = [arms[name] for name in table["method"]]
        labels = [style.wrap(arm.label) for arm in drawn]
        looks = [(arm.colour, arm.marker) for arm in drawn]
        verdicts = table["verdict"] if several else [""] * len(table)
        style.difference_intervals(ax, table, labels, verdicts, looks)
        baseline = tuple(table.iloc[0][["baseline", "baseline_temperature"]])
        ax.set_title(f"Against {opponent(arms, *baseline)}")
        for y, row in enumerate(table.itertuples() if several else []):
            theirs = runs[baseline]
            if row.baseline_runs > row.n_seeds:  # pool the twin's runs, as in the difference
                theirs = (theirs + runs[comparison.protocol.twin, 0.0]) / 2
            each = 100 * (runs[row.method, 0.0] - theirs)
            ax.plot(each, np.full(len(each), y + 0.24), "|", color=looks[y][0], markersize=5)
    axes.flat[-1].set_xlabel(f"points of {measured}")
    data = pd.concat(families, ignore_index=True)
    differences = "; ".join(
        f"{arms.label(row.method)} {with_interval(row.difference, row.lower, row.upper)} points, "
        f"{row.verdict}, against "
        f"{arms.label(row.baseline)}"
        for row in data.itertuples()
    )
    return Drawing(
        "forest",
        "outcome",
        "Paired differences",
        f"Differences in {measured}, of greedy play on the test panel. A point with a bar is the "
        f"difference over {'seeds and ' if several else ''}tasks"
        + (
            f" with its {percent(comparison.protocol.level, 0)} interval. The ticks below are "
            "single seeds. A point is filled if its verdict is better or worse after Holm's "
            f"correction, which requires at least {FEWEST_SEEDS} seeds; all others are hollow."
            if several
            else ". There are no verdicts with one seed."
        ),
        f"Paired differences: {differences}.",
        figure,
        data,
    )


def sft_temperatures(comparison: Comparison, arms: Arms) -> Drawing | None:
    """Plot the SFT policy's success by temperature, on the validation and the test panel.

    Dots at the right edge are the trained arms, for comparison.
    """
    table = comparison.temperatures
    if table.empty:
        return None
    figure, axes = style.canvas(height=3.0)
    ax = axes[0, 0]
    arm = arms[comparison.protocol.untrained]
    measure = MEASURES[comparison.protocol.settings.score]
    looks = {VALIDATION: ("--", "none", -0.008), TEST: ("-", arm.colour, 0.008)}
    for panel, (line, fill, shift) in looks.items():
        mine = table[table["panel"] == panel]
        if mine.empty:
            continue
        look = {"linestyle": line, "markerfacecolor": fill, "markersize": 6, "label": panel}
        style.interval_dots(
            ax, mine["temperature"] + shift, mine, arm, columns=measure.columns, **look
        )
    best = comparison.best_temperature
    ax.axvline(best, color=MUTED, linewidth=1, linestyle=":")
    reached = comparison.methods.groupby("method")["endpoint"].first()
    at_edge = {"transform": ax.get_yaxis_transform(), "clip_on": False, "linestyle": "none"}
    for name in arms.trained:
        ax.plot(1.0, reached[name], label=arms.label(name), **arms[name].look | at_edge)
    ax.set_xlabel("temperature of the SFT policy (0 = greedy)")
    ax.set_ylabel(measure.name)
    style.percent_axis(ax.yaxis, measure.unit)
    style.legend_below(figure, ax.get_legend_handles_labels()[0])
    test = table[table["panel"] == TEST]
    numbers = ", ".join(
        f"{100 * value:.1f}{measure.unit} at {temperature:g}"
        for value, temperature in zip(test[measure.column], test["temperature"], strict=True)
    )
    return Drawing(
        "sft_temperatures",
        "outcome",
        "Sampling alone: the SFT policy at every temperature",
        f"The same SFT policy, sampled at different temperatures. The dotted line is T = {best:g}, "
        "the best on validation, which trained arms have to beat. Right edge: their greedy "
        f"{endpoint_phrase(comparison)} on test.",
        f"Test {measure.name} of the SFT policy: {numbers}.",
        figure,
        table,
    )


def task_types(comparison: Comparison, arms: Arms) -> Drawing:
    """Plot every arm's greedy test success at the last round, by task type."""
    table = comparison.task_types
    kinds = list(dict.fromkeys(table["task_type"]))
    names = [name for name in arms.names if name in set(table["method"])]
    many = len(names) > MANY
    figure = (_success_grid if many else _success_dots)(table, kinds, names, arms)
    numbers = "; ".join(
        f"{kind.replace('_', ' ')}: "
        + ", ".join(
            f"{arms.label(row.method)} {percent(row.success, 0)}"
            for row in table[table["task_type"] == kind].itertuples()
        )
        for kind in kinds
    )
    remark = "Per cent of the tasks of each type, greedy, after the last round. " if many else ""
    bars = "The CSV has intervals. " if many else "Bars are intervals within the type. "
    remark += if_several(comparison.seeds["seed"], bars)
    return Drawing(
        "task_types",
        "outcome",
        "Success by task type",
        f"{remark}There are no verdicts by task type.",
        f"Greedy test success by task type. {numbers}.",
        figure,
        table,
    )


def _success_dots(table: pd.DataFrame, kinds: list[str], names: list[str], arms: Arms) -> Figure:
    figure, axes = style.canvas(height=1.1 + len(kinds) * (0.1 * len(names) + 0.25), grid="x")
    ax = axes[0, 0]
    offsets = (np.arange(len(names)) - (len(names) - 1) / 2) * 0.7 / max(1, len(names))
    for offset, name in zip(offsets, names, strict=True):
        mine = table[table["method"] == name].set_index("task_type").reindex(kinds)
        places = np.arange(len(kinds)) + offset
        style.interval_dots(ax, places, mine, arms[name], across=True, label=arms.label(name))
    ax.set_yticks(range(len(kinds)), [_kind(kind, table) for kind in kinds])
    ax.set_ylim(len(kinds) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0, labelsize=8)
    ax.set_xlim(0, 1)
    style.percent_axis(ax.xaxis)
    ax.set_xlabel("greedy test success, last round")
    ax.spines["left"].set_visible(False)
    style.legend_below(figure, ax.get_legend_handles_labels()[0])
    return figure


def _success_grid(table: pd.DataFrame, kinds: list[str], names: list[str], arms: Arms) -> Figure:
    success = table.pivot(index="method", columns="task_type", values="success")
    success = success.reindex(index=names, columns=kinds).to_numpy()
    figure, axes = style.canvas(height=1.5 + 0.3 * len(names), grid="")
    ax = axes[0, 0]
    for (row, column), share in np.ndenumerate(success):
        if np.isnan(share):
            continue
        # A transparent colour keeps the text readable in light and dark themes.
        look = {"color": REFERENCE_COLOUR, "alpha": 0.08 + 0.5 * share, "linewidth": 0}
        ax.add_patch(Rectangle((column, row), 1, 1, **look))
        write_in_cell(ax, (row, column), f"{100 * share:.0f}", fontsize=9)
    ax.set_xlim(0, len(kinds))
    titles = [_kind(kind, table) for kind in kinds]
    ax.set_xticks(np.arange(len(kinds)) + 0.5, titles, fontsize=8, rotation=90)
    ax.xaxis.tick_top()
    style.cell_rows(ax, [style.wrap(arms.label(name)) for name in names], fontsize=8)
    return figure


def _kind(kind: str, table: pd.DataFrame) -> str:
    count = table.loc[table["task_type"] == kind, "n_tasks"].iloc[0]
    return f"{kind.replace('_', ' ')}\n{count} tasks"
