"""Plots the endpoint, and how replies depend on prompts, for arms that vary one setting."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from hgrpo.evaluation.comparison import Comparison
from hgrpo.report import style
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import MEASURES, endpoint_phrase
from hgrpo.report.figures.collapse import COLLAPSE
from hgrpo.report.style import MUTED, Drawing
from hgrpo.report.words import if_several, listing, percent
from hgrpo.trajectories.log_row import ANY

_FAILED = "stopped"


def axis_figure(
    comparison: Comparison,
    stops: pd.DataFrame,
    collapse: pd.DataFrame | None,
    arms: Arms,
    axis: Mapping,
) -> Drawing:
    """Plot the endpoint, with its interval, and final collapse metrics for each value of `axis`.

    Args:
        stops, collapse: from `hgrpo.report.logs`; `collapse` may be None.
        axis: from `Inputs.axes`.
    """
    table = axis_table(comparison, stops, collapse, axis)
    measured = [name for name in COLLAPSE if f"{name}_last" in table]
    figure, axes = style.canvas(1 + len(measured), height=2.4 + 1.9 * len(measured), sharex=True)
    first, *others = axes[:, 0]
    places = np.arange(len(table))
    ends = (table["lower"], table["upper"])
    colours = [arms[name].colour for name in table["method"]]
    first.plot(places, table["endpoint"], color=MUTED, linewidth=1, zorder=1)
    first.vlines(places, *ends, colours, linewidth=1.6)
    for place, row in zip(places, table.itertuples(), strict=True):
        marker = "X" if row.failed else arms[row.method].marker
        first.plot(place, row.endpoint, marker, color=arms[row.method].colour, markersize=6)
    measure = MEASURES[comparison.protocol.settings.score]
    style.percent_axis(first.yaxis, measure.unit)
    first.set_title(f"Test: {endpoint_phrase(comparison)}", fontsize=9.5)
    for ax, name in zip(others, measured, strict=True):
        _draw_collapse(ax, table, name, collapse, arms)
    axes[-1, 0].set_xticks(places, table["value"])
    axes[-1, 0].set_xlabel(f"{axis['label']} ({axis['key']})", fontsize=9)
    numbers = ", ".join(
        f"{100 * row.endpoint:.1f}{measure.unit} at {row.value}" for row in table.itertuples()
    )
    bars = if_several(
        comparison.seeds["seed"],
        f"Bars are {percent(comparison.protocol.level, 0)} intervals of each arm. Verdicts are "
        "based on paired differences and not on these intervals. ",
    )
    return Drawing(
        f"axis_{axis['name']}",
        "outcome",
        f"{axis['label']}: one key, {len(table)} values",
        f"{bars}{_notes(table, measured)}".rstrip(),
        f"Greedy test play, {endpoint_phrase(comparison)}, by {axis['label']}: {numbers}.",
        figure,
        table,
    )


def axis_table(
    comparison: Comparison, stops: pd.DataFrame, collapse: pd.DataFrame | None, axis: Mapping
) -> pd.DataFrame:
    """One row for each value of the axis.

    Columns: value, method, endpoint with its interval, seeds, and failed (number of runs stopped
    by a rule). With `collapse`, each metric in `COLLAPSE` has two more columns with means over
    seeds: <name>_first before the first update, and <name>_last at the last step.
    """
    greedy = comparison.methods[comparison.methods["temperature"] == 0].set_index("method")
    failed = stops.loc[stops["status"] == _FAILED, "method"].value_counts()
    rows = []
    for value, method in axis["arms"]:
        played = greedy.loc[method]
        row = {
            "value": value,
            "method": method,
            "endpoint": played["endpoint"],
            "lower": played["endpoint_lower"],
            "upper": played["endpoint_upper"],
            "seeds": int(played["n_seeds"]),
            "failed": int(failed.get(method, 0)),
        }
        if collapse is not None:
            runs = _runs(collapse, method)
            for name in COLLAPSE:
                row |= {f"{name}_{end}": runs[name].agg(end).mean() for end in ("first", "last")}
        rows.append(row)
    return pd.DataFrame(rows)


def _runs(collapse: pd.DataFrame, method: str) -> pd.api.typing.DataFrameGroupBy:
    rows = collapse[(collapse["method"] == method) & (collapse["turn"] == ANY)]
    rows = rows.reindex(columns=["seed", "round", "step", *COLLAPSE])
    return rows.sort_values(["round", "step"], kind="stable").groupby("seed")


def _draw_collapse(
    ax: Axes, table: pd.DataFrame, name: str, collapse: pd.DataFrame, arms: Arms
) -> None:
    ax.set_title(COLLAPSE[name], fontsize=9.5)
    ax.plot(table[f"{name}_first"], color=MUTED, linewidth=1, linestyle=":")
    ax.plot(table[f"{name}_last"], color=MUTED, linewidth=1)
    for place, method in enumerate(table["method"]):
        seeds = _runs(collapse, method)[name].last()
        look = {"color": arms[method].colour, "markersize": 4, "linestyle": "none"}
        ax.plot([place] * len(seeds), seeds, arms[method].marker, **look)


def _notes(table: pd.DataFrame, measured: Sequence[str]) -> str:
    notes = ""
    failed = [
        f"{row.failed} of {row.seeds} at {row.value}" for row in table.itertuples() if row.failed
    ]
    if failed:
        notes += f"A cross marks a value with runs stopped by a rule: {listing(failed)}. "
    if measured:
        notes += (
            "Below: dependence of a turn's reply Z on its prompt X, and diversity of replies, at "
            "the end of the run (points are seeds). Dotted: before the first update. "
        )
    return notes
