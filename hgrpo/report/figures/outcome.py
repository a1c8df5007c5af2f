"""What the study found: paired differences, temperatures of the SFT policy, task types."""

import numpy as np
import pandas as pd

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST, VALIDATION
from hgrpo.report.arms import Arms
from hgrpo.report.style import INK, MUTED, Drawing, canvas, label_ends, percent_axis
from hgrpo.report.words import DECIDED, percent, points, temperature_name


def forest(comparison: Comparison, arms: Arms) -> Drawing | None:
    """Paired differences with intervals: against the reference, and against the SFT policy."""
    families = [
        (table, title)
        for table, title in (
            (comparison.against_reference, f"Against {arms.label(arms.reference)}"),
            (comparison.against_untrained, _untrained_title(comparison, arms)),
        )
        if len(table)
    ]
    if not families:
        return None
    sizes = [len(table) for table, _ in families]
    figure, axes = canvas(
        len(families),
        height=0.9 + 0.42 * sum(sizes) + 0.5 * len(families),
        sharex=True,
        height_ratios=[size + 0.6 for size in sizes],
    )
    runs = comparison.seeds.set_index(["method", "temperature", "seed"])["success"].sort_index()
    for ax, (table, title) in zip(axes.flat, families, strict=True):
        ax.grid(False)
        ax.grid(axis="x", linewidth=0.7)
        ax.axvline(0, color=INK, linewidth=1)
        ax.set_title(title)
        for y, row in enumerate(table.itertuples()):
            arm = arms[row.method]
            decided = row.verdict in DECIDED
            theirs = runs[row.baseline, row.baseline_temperature]
            each = 100 * (runs[row.method, 0.0] - theirs)
            ax.plot(each, np.full(len(each), y + 0.24), "|", color=arm.colour, markersize=5)
            ax.plot([100 * row.lower, 100 * row.upper], [y, y], color=arm.colour, linewidth=2)
            ax.plot(
                100 * row.difference,
                y,
                arm.marker,
                color=arm.colour,
                markersize=7,
                markerfacecolor=arm.colour if decided else "none",
            )
            ax.annotate(
                row.verdict,
                (1.0, y),
                xycoords=("axes fraction", "data"),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                fontweight="bold" if decided else "normal",
                color=INK if decided else MUTED,
                annotation_clip=False,
            )
        ax.set_yticks(range(len(table)), [arms.label(name) for name in table["method"]])
        ax.set_ylim(len(table) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
    axes.flat[-1].set_xlabel("difference in greedy test success, percentage points")
    data = pd.concat([table for table, _ in families], ignore_index=True)
    said = "; ".join(
        f"{arms.label(row.method)} {points(row.difference)} points "
        f"({points(row.lower)} to {points(row.upper)}), {row.verdict}, against "
        f"{arms.label(row.baseline)}"
        for row in data.itertuples()
    )
    return Drawing(
        "forest",
        "outcome",
        "Paired differences at the last round",
        f"Point and bar: difference over seeds and tasks with its "
        f"{percent(comparison.protocol.level, 0)} interval. Ticks below: single seeds. "
        "A filled point has a verdict after Holm's correction, a hollow one is inconclusive.",
        f"Paired differences: {said}.",
        figure,
        data,
    )


def sft_temperatures(comparison: Comparison, arms: Arms) -> Drawing | None:
    """Success of the supervised policy against sampling temperature, on both panels."""
    table = comparison.temperatures
    if not len(table):
        return None
    figure, axes = canvas(height=3.0)
    ax = axes[0, 0]
    arm = arms[comparison.protocol.untrained]
    looks = {VALIDATION: ("--", "none", -0.008), TEST: ("-", arm.colour, 0.008)}
    for panel, (line, fill, shift) in looks.items():
        mine = table[table["panel"] == panel]
        if not len(mine):
            continue
        error = np.abs(mine[["lower", "upper"]].to_numpy().T - mine["success"].to_numpy())
        ax.errorbar(
            mine["temperature"] + shift,
            mine["success"],
            yerr=error,
            fmt="o",
            linestyle=line,
            color=arm.colour,
            markerfacecolor=fill,
            elinewidth=1,
            label=panel,
        )
    best = comparison.best_temperature
    ax.axvline(best, color=MUTED, linewidth=1, linestyle=":")
    ends = []
    for name in arms.trained:
        rows = comparison.methods[comparison.methods["method"] == name]
        reached = rows["success"].iloc[0]
        ax.plot(
            1.0,
            reached,
            marker=arms[name].marker,
            color=arms[name].colour,
            transform=ax.get_yaxis_transform(),
            clip_on=False,
        )
        ends.append((arms.label(name), 1.0, reached, arms[name].colour))
    ax.set_xlabel("sampling temperature of the SFT policy (0 = greedy)")
    ax.set_ylabel("success")
    percent_axis(ax.yaxis)
    ax.spines[["top", "right"]].set_visible(False)
    label_ends(ax, ends, gap=0.085, offset=8)
    figure.legend(loc="outside lower center", ncols=2)
    test = table[table["panel"] == TEST]
    said = ", ".join(f"{percent(row.success)} at {row.temperature:g}" for row in test.itertuples())
    return Drawing(
        "sft_temperatures",
        "outcome",
        "Sharpening alone: the SFT policy at every temperature",
        f"No training here, only colder sampling. Dotted: T = {best:g}, the best on validation, "
        "which trained arms (right edge, greedy on test) have to beat.",
        f"Test success of the SFT policy: {said}.",
        figure,
        table,
    )


def task_types(comparison: Comparison, arms: Arms) -> Drawing:
    """Greedy test success of every arm at the last round, by task type."""
    table = comparison.task_types
    kinds = list(dict.fromkeys(table["task_type"]))
    names = [name for name in arms.names if name in set(table["method"])]
    figure, axes = canvas(height=1.1 + len(kinds) * (0.1 * len(names) + 0.25))
    ax = axes[0, 0]
    ax.grid(False)
    ax.grid(axis="x", linewidth=0.7)
    offsets = (np.arange(len(names)) - (len(names) - 1) / 2) * 0.7 / max(1, len(names))
    for offset, name in zip(offsets, names, strict=True):
        mine = table[table["method"] == name].set_index("task_type").reindex(kinds)
        error = np.abs(mine[["lower", "upper"]].to_numpy().T - mine["success"].to_numpy())
        ax.errorbar(
            mine["success"],
            np.arange(len(kinds)) + offset,
            xerr=error,
            fmt=arms[name].marker,
            color=arms[name].colour,
            elinewidth=1,
            markersize=5,
            label=arms.label(name),
        )
    counts = table.groupby("task_type")["n_tasks"].first()
    ax.set_yticks(
        range(len(kinds)), [f"{kind.replace('_', ' ')}\n{counts[kind]} tasks" for kind in kinds]
    )
    ax.set_ylim(len(kinds) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0, labelsize=8)
    ax.set_xlim(0, 1)
    percent_axis(ax.xaxis)
    ax.set_xlabel("greedy test success, last round")
    ax.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=min(3, len(names)))
    said = "; ".join(
        f"{kind.replace('_', ' ')}: "
        + ", ".join(
            f"{arms.label(row.method)} {percent(row.success, 0)}"
            for row in table[table["task_type"] == kind].itertuples()
        )
        for kind in kinds
    )
    return Drawing(
        "task_types",
        "outcome",
        "Success by task type",
        "Bars: intervals within the type. They carry no verdict: many small comparisons.",
        f"Greedy test success by task type. {said}.",
        figure,
        table,
    )


def _untrained_title(comparison: Comparison, arms: Arms) -> str:
    if comparison.best_temperature is None:
        return ""
    where = temperature_name(comparison.best_temperature)
    return f"Against {arms.label(comparison.protocol.untrained)}, {where}"
