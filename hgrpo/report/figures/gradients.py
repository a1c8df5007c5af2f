"""Draws the figure of gradient norms against the standard deviation of returns, for one arm."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from hgrpo.evaluation.gradients.slopes import signed_root
from hgrpo.evaluation.gradients.table import PASSES, REGULARISERS
from hgrpo.report import style
from hgrpo.report.style import INK, MUTED, Drawing

# Component -> label and colour.
DRAWN = {
    "task": ("task", "#3a86c8"),
    "kl": ("KL", "#e07b00"),
    "entropy": ("entropy", "#009e73"),
}
# Each tuple lists components with a common vertical axis. The task norm may be a thousand times the
# other norms, so the task has a separate axis.
SCALES = (("task",), ("kl", "entropy"))
TITLES = {"prefilter": "all groups", "postfilter": "after the filter"}


def gradient_norms(norms: pd.DataFrame, method: str, label: str, steps: int) -> Drawing:
    """Plot the weighted norms by bucket: a column for each round, two rows for each pass.

    Args:
        norms: from `weighted_norms`, for all arms.
        steps: optimiser batches per round.
    """
    mine = norms[(norms["method"] == method) & norms["component"].isin([*DRAWN, REGULARISERS])]
    rounds = sorted(mine["round"].unique())
    rows = [(name, parts) for name in PASSES for parts in SCALES]
    figure, axes = style.canvas(len(rows), len(rounds), height=7.4, sharex=True, sharey="row")
    for row, (name, parts) in enumerate(rows):
        for column, number in enumerate(rounds):
            ax = axes[row, column]
            _draw(ax, mine[(mine["pass"] == name) & (mine["round"] == number)], parts)
            if row == 0:
                ax.set_title(f"after {number * steps} steps", fontsize=9)
        names = " and ".join(DRAWN[part][0] for part in parts)
        axes[row, 0].set_ylabel(f"{names},\n{TITLES[name]}", fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("deviation of returns", fontsize=8.5)
    look = {"marker": "o", "markersize": 4}
    style.legend_below(
        figure,
        [Line2D([], [], color=colour, label=text, **look) for text, colour in DRAWN.values()],
    )
    return Drawing(
        f"norms_{method}",
        "gradients",
        f"{label}: gradient norms",
        "Each point is a bucket of groups, at their mean standard deviation of returns. Norms are "
        "multiplied by the coefficients and noise-corrected. They are signed roots of squares, "
        "which are negative where noise was larger than expected. Thin lines are seeds, thick "
        "lines the roots of mean squares over seeds. Unmeasured buckets are gaps.",
        _alt(mine, label),
        figure,
        mine,
    )


def _draw(ax: Axes, part: pd.DataFrame, components: Sequence[str]) -> None:
    if part.empty:
        ax.text(0.5, 0.5, "not measured", color=MUTED, ha="center", transform=ax.transAxes)
        return
    for component in components:
        colour = DRAWN[component][1]
        rows = part[part["component"] == component]
        several = rows["seed"].nunique() > 1
        for _, seed in rows.groupby("seed"):
            seed = seed.sort_values("deviation")
            ax.plot(
                seed["deviation"],
                signed_root(seed["square"]),
                color=colour,
                linewidth=0.8 if several else 1.6,
                alpha=0.5 if several else 1,
                marker="" if several else "o",
                markersize=3,
            )
        if several:
            mean = rows.groupby("bucket", sort=False)[["deviation", "square"]].mean()
            mean = mean.sort_values("deviation")
            root = signed_root(mean["square"])
            ax.plot(mean["deviation"], root, color=colour, marker="o", markersize=3.5)
    ax.axhline(0, color=INK, linewidth=0.7)


def _alt(table: pd.DataFrame, label: str) -> str:
    parts = []
    for component, (text, _) in DRAWN.items():
        rows = table[(table["component"] == component) & (table["pass"] == PASSES[0])]
        mean = rows.groupby(["round", "bucket"])[["deviation", "square"]].mean()
        squares = mean.sort_values("deviation").groupby("round")["square"]
        ends = squares.agg(["first", "last"]).mean()
        parts.append(f"{text} from {ends['first']:.3g} to {ends['last']:.3g}")
    return (
        f"{label}: mean squared norms of all groups, over all policies, from the smallest "
        "deviation to the largest: " + "; ".join(parts)
    )
