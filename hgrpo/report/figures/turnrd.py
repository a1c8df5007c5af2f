"""Draws TurnRD's weights of turns by round, and the quality of its fits by epoch."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hgrpo.report.arms import Arm, Arms
from hgrpo.report.style import INK, MUTED, Drawing, canvas, legend_below, whole_numbers
from hgrpo.report.words import if_several

ROUNDS = {
    "alpha_var": "variance of the weights",
    "alpha_entropy_ratio": "entropy of weights, 1 = even",
    "alpha_progress_corr": "weights against progress, corr.",
    "cls_query_norm": "norm of the query (v1)",
}
EPOCHS = {
    "validation_loss": "fits: validation loss",
    "return_corr": "fits: predicted return, corr.",
    "alpha_cf_corr": "fits: weights against CF, corr.",
}
ALWAYS = ("alpha_var", "alpha_entropy_ratio", "alpha_progress_corr", "validation_loss")


def turnrd(logs: pd.DataFrame, fits: pd.DataFrame, arms: Arms) -> Drawing | None:
    """Plot statistics of TurnRD's weights by round and, below, statistics of its fits by epoch.

    There is a panel for each logged measure, and for each measure in `ALWAYS`. None if nothing was
    logged.
    """
    methods = arms.with_figure("turnrd")
    table = turnrd_table(logs, fits, methods)
    if table.empty:
        return None
    logged = set(table["measure"])
    panels = {
        measure: title
        for measure, title in (ROUNDS | EPOCHS).items()
        if measure in logged or measure in ALWAYS
    }
    rows = -(-len(panels) // 2)
    figure, axes = canvas(rows, 2, height=0.5 + 1.65 * rows)
    for ax, (measure, title) in zip(axes.flat, panels.items(), strict=False):
        mine = table[table["measure"] == measure]
        for name in methods:
            _draw(ax, mine[mine["method"] == name], arms[name])
        ax.set_title(title, fontsize=8.5, fontweight="normal")
        ax.tick_params(labelsize=8, labelcolor=INK)
        if measure in ROUNDS:
            whole_numbers(ax, "round", fontsize=8)
        else:
            ax.set_xlabel("epochs between rounds", fontsize=8)
            if len(mine):
                ax.set_xticks(range(mine["round"].min(), mine["round"].max() + 2))
        if measure.endswith("_corr"):
            ax.axhline(0, color=MUTED, linewidth=0.8)
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    drawn = [arms[name] for name in methods]
    legend_below(figure, [Line2D([], [], label=arm.label, **arm.look) for arm in drawn])
    return Drawing(
        "turnrd",
        "training",
        "TurnRD: weights over the turns",
        f"{if_several(logs['seed'], 'Means over seeds. ')}"
        "The first round has no model, so all turns have equal weights. Entropy is 1 if all "
        "weights are equal. A fit is drawn between its round and the next: each point is the best "
        "model so far, evaluated on held-out tasks."
        + (
            " CF: correlation of the weights with counterfactual verdicts."
            if "alpha_cf_corr" in logged
            else ""
        ),
        _alt(table, arms, methods),
        figure,
        table,
    )


def turnrd_table(logs: pd.DataFrame, fits: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Long table of means over seeds: method, measure, round, epoch, value, n_seeds.

    A row of a round has epoch 0, and its value is the mean over the round's batches. In a row of a
    fit, `round` is the round before the fit, and the value is that of the best model up to this
    epoch (see `best_so_far`). Epoch 0 of a fit is the initial model; training epochs start at 1.
    """
    parts = [
        _long(logs[logs["method"].isin(methods)].assign(epoch=0), ROUNDS),
        _long(best_so_far(fits[fits["method"].isin(methods)]), EPOCHS),
    ]
    table = pd.concat(parts, ignore_index=True)
    order = {name: place for place, name in enumerate([*methods, *ROUNDS, *EPOCHS])}
    return table.sort_values(
        ["measure", "method", "round", "epoch"],
        key=lambda column: column.map(order) if column.name in ("measure", "method") else column,
        ignore_index=True,
    )


def best_so_far(fits: pd.DataFrame) -> pd.DataFrame:
    """Replace every epoch's row by the row with the lowest validation loss up to that epoch.

    The best row of a fit that stopped early is repeated up to the length of the longest fit of the
    same method and round, so that means include all seeds. Epochs are renumbered from 0, the
    initial model.
    """
    if fits.empty:
        return fits
    longest = fits.groupby(["method", "round"])["epoch"].max()
    parts = []
    for (method, _, number), fit in fits.groupby(["method", "seed", "round"]):
        fit = fit.sort_values("epoch").reset_index(drop=True)
        best = fit["validation_loss"].expanding().apply(np.argmin, raw=True).astype(int)
        epochs = range(longest[method, number] + 2)
        rows = [best[min(epoch, len(fit) - 1)] for epoch in epochs]
        parts.append(fit.iloc[rows].assign(epoch=epochs))
    return pd.concat(parts, ignore_index=True)


def _long(rows: pd.DataFrame, measures: Mapping[str, str]) -> pd.DataFrame:
    """Average over the rows of each seed, round and epoch, then over seeds; skip missing values."""
    keys = ["method", "measure", "round", "epoch"]
    long = rows.melt(
        ["method", "seed", "round", "epoch"], list(measures), "measure", "value"
    ).dropna(subset="value")
    runs = long.astype({"value": float}).groupby([*keys, "seed"], as_index=False)["value"].mean()
    return runs.groupby(keys, as_index=False).agg(value=("value", "mean"), n_seeds=("seed", "size"))


def _draw(ax: Axes, rows: pd.DataFrame, arm: Arm) -> None:
    """Plot a line over rounds or, for a measure of fits, a line per fit up to the next round."""
    look = arm.look | {"markersize": 3.5, "linewidth": 1.2}
    if rows["measure"].isin(list(ROUNDS)).all():
        ax.plot(rows["round"], rows["value"], **look)
        return
    for number, fit in rows.groupby("round"):
        ax.plot(number + fit["epoch"] / fit["epoch"].max(), fit["value"], **look)


def _alt(table: pd.DataFrame, arms: Arms, methods: Sequence[str]) -> str:
    sentences = []
    for name in methods:
        mine = table[table["method"] == name]
        values = [
            f"{title} {rows['value'].iloc[-1]:.2f}"
            for measure, title in (
                ("alpha_progress_corr", "correlation with progress"),
                ("return_corr", "correlation of predicted and true return"),
                ("alpha_cf_corr", "correlation with counterfactual verdicts"),
            )
            if len(rows := mine[mine["measure"] == measure])
        ]
        sentences.append(f"{arms.label(name)}: {', '.join(values) or 'none'}")
    return f"Last values. {'; '.join(sentences)}."
