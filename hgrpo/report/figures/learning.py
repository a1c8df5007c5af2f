"""Greedy test success against rounds and against what was spent."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.outcomes import TEST
from hgrpo.report.arms import Arms
from hgrpo.report.style import MUTED, Drawing, canvas, label_ends, percent_axis
from hgrpo.report.words import percent, temperature_name

BUDGETS = {
    "trajectories": ("trajectories collected, thousands", 1e3),
    "tokens": ("tokens in those trajectories, millions", 1e6),
    "seconds": ("minutes of training, evaluation left out", 60),
}


def learning_curves(comparison: Comparison, arms: Arms) -> Drawing:
    """Greedy test success after every round; thin lines are seeds, bars the last intervals."""
    table = _with_start(comparison, arms)
    figure, axes = canvas(height=3.6)
    ax = axes[0, 0]
    ends = []
    shifts = (np.arange(len(arms.trained)) - (len(arms.trained) - 1) / 2) * 0.05 + 0.2
    for shift, name in zip(shifts, arms.trained, strict=True):
        arm, mine = arms[name], table[table["method"] == name]
        runs = comparison.rounds_by_seed
        runs = runs[(runs["method"] == name) & (runs["panel"] == TEST)]
        if runs["seed"].nunique() > 1:
            for _, run in runs.groupby("seed"):
                ax.plot(run["round"], run["success"], color=arm.colour, alpha=0.3, linewidth=0.8)
        ax.plot(
            mine["round"],
            mine["success"],
            color=arm.colour,
            marker=arm.marker,
            markersize=5,
        )
        last = mine.iloc[-1]
        ax.plot(
            [last["round"] + shift] * 2,
            [last["lower"], last["upper"]],
            color=arm.colour,
            alpha=0.5,
            linewidth=2.5,
        )
        ends.append((arm.label, mine["round"].iloc[-1], mine["success"].iloc[-1], arm.colour))
    _untrained_line(ax, comparison, arms, ends)
    ax.set_xlabel("round")
    ax.set_ylabel("greedy success on the test panel")
    ax.set_xticks(sorted(table["round"].unique()))
    percent_axis(ax.yaxis)
    ax.spines[["top", "right"]].set_visible(False)
    label_ends(ax, ends)
    return Drawing(
        "learning_curves",
        "learning",
        "Learning curves",
        f"Greedy success on the {comparison.n_test} test tasks after every round; thin lines are "
        f"single seeds. Only the last round is the endpoint: bars beside it are "
        f"{percent(comparison.protocol.level, 0)} intervals.",
        _said(table, arms),
        figure,
        table,
    )


def equal_budget(comparison: Comparison, logs: pd.DataFrame, arms: Arms) -> Drawing | None:
    """The same successes against trajectories, tokens and training time."""
    if logs.empty:
        return None
    spent = logs.groupby(["method", "seed", "round"])[list(BUDGETS)].last()
    spent = spent.groupby(["method", "round"]).mean()
    table = _with_start(comparison, arms).join(spent, on=["method", "round"])
    table.loc[table["round"] == 0, list(BUDGETS)] = 0.0
    figure, axes = canvas(len(BUDGETS), height=6.6, sharey=True)
    for ax, (column, (label, unit)) in zip(axes.flat, BUDGETS.items(), strict=True):
        for name in arms.trained:
            arm, mine = arms[name], table[table["method"] == name]
            ax.plot(
                mine[column] / unit,
                mine["success"],
                color=arm.colour,
                marker=arm.marker,
                markersize=5,
                label=arm.label,
            )
        _untrained_line(ax, comparison, arms, [])
        ax.set_xlabel(label)
        ax.set_ylabel("test success")
        percent_axis(ax.yaxis)
        ax.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)))
    totals = table.groupby("method")[list(BUDGETS)].max()
    said = "; ".join(
        f"{arms.label(name)} {row.trajectories:.0f} trajectories, {row.tokens / 1e6:.2f} million "
        f"tokens, {row.seconds / 60:.1f} minutes"
        for name, row in totals.iterrows()
    )
    return Drawing(
        "equal_budget",
        "learning",
        "Success against what it cost",
        "Greedy test success against trajectories, tokens and training time, means over seeds. "
        "Read across at equal cost, not at equal rounds.",
        f"Spent in all: {said}.",
        figure,
        table,
    )


def _with_start(comparison: Comparison, arms: Arms) -> pd.DataFrame:
    """Test rows of the trained arms, each preceded by the SFT policy it started from."""
    table = comparison.rounds[comparison.rounds["panel"] == TEST]
    start = table[table["method"] == arms.untrained]
    parts = []
    for name in arms.trained:
        mine = table[table["method"] == name]
        if len(start) and mine["round"].min() > 0:
            parts.append(start.assign(method=name, round=0))
        parts.append(mine)
    return pd.concat(parts, ignore_index=True)


def _untrained_line(ax: Axes, comparison: Comparison, arms: Arms, ends: list) -> None:
    """A level line at the SFT policy's best temperature; its name is added to `ends`."""
    best = comparison.best_temperature
    if best is None:
        return
    rows = comparison.methods
    rows = rows[(rows["method"] == arms.untrained) & (rows["temperature"] == best)]
    level = rows["success"].iloc[0]
    ax.axhline(level, color=MUTED, linewidth=1.2, linestyle=":")
    ends.append((f"{arms.label(arms.untrained)},\n{temperature_name(best)}", 0, level, MUTED))


def _said(table: pd.DataFrame, arms: Arms) -> str:
    lines = []
    for name in arms.trained:
        mine = table[table["method"] == name]
        first, last = mine.iloc[0], mine.iloc[-1]
        lines.append(
            f"{arms.label(name)} from {percent(first['success'])} at round {first['round']} to "
            f"{percent(last['success'])} at round {last['round']}"
        )
    return f"Greedy test success: {'; '.join(lines)}."
