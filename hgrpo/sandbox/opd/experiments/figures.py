"""The figure of an experiment: bands of one standard deviation over seeds."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

from hgrpo.report.style import canvas, legend_below, whole_numbers

_DOTS_PER_INCH = 150


def curves(rows: pd.DataFrame, panels: Mapping[str, str], line: str, path: Path) -> None:
    """A panel for each column over steps, with a line for each value of the column `line`."""
    figure, axes = canvas(len(panels), 1, height=2.1 * len(panels) + 0.6, sharex=True)
    for ax, (column, label) in zip(axes.flat, panels.items(), strict=True):
        shown = rows.dropna(subset=[column])
        _bands(ax, shown, "step", column, line, rows[line].unique(), marker=".")
        ax.set_ylabel(label)
    whole_numbers(axes.flat[-1], "step")
    _finish(figure, axes.flat[0], path)


def last_errors(rows: pd.DataFrame, lines: Sequence[str], path: Path) -> None:
    """The last test error over the length of the warm-up; runs without a top-k set are dashed."""
    last = rows[rows["step"] == rows["step"].max()]
    figure, axes = canvas(1, 1, height=3.4)
    ax = axes[0, 0]
    varied = [name for name in lines if last.loc[last["top_k"] > 0, name].nunique() > 1]
    words = {"top_k": lambda k: f"k = {k}"}
    named = last.assign(
        line=[
            ", ".join(words.get(name, str)(row[name]) for name in varied) or "top-k"
            for _, row in last.iterrows()
        ]
    )
    cut = named[named["top_k"] > 0]
    _bands(ax, cut, "warmup_steps", "test_error", "line", cut["line"].unique(), marker="o")
    full = named.loc[named["top_k"] == 0, "test_error"].mean()
    ax.axhline(full, linestyle="--", color="0.4", label="full vocabulary")
    whole_numbers(ax, "steps with the full vocabulary first")
    ax.set_ylabel("last test error")
    _finish(figure, ax, path)


def variances(rows: pd.DataFrame, panels: Mapping[str, str], path: Path) -> None:
    """Columns over horizons, both logarithmic, a line for each estimator: means over seeds."""
    figure, axes = canvas(len(panels), 1, height=2.4 * len(panels) + 0.6, sharex=True)
    for ax, (column, label) in zip(axes.flat, panels.items(), strict=True):
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(numticks=6))
        ax.yaxis.set_major_formatter(FormatStrFormatter("%g"))
        ax.yaxis.set_minor_locator(NullLocator())
        _bands(ax, rows, "horizon", column, "estimator", rows["estimator"].unique(), marker="o")
        ax.set_ylabel(label)
    horizons = sorted(rows["horizon"].unique())
    axes.flat[-1].set_xticks(horizons, [str(each) for each in horizons])
    axes.flat[-1].xaxis.minorticks_off()
    axes.flat[-1].set_xlabel("horizon (tokens)")
    _finish(figure, axes.flat[0], path)


def _bands(
    ax: Axes, rows: pd.DataFrame, x: str, y: str, line: str, order: Iterable[object], **look: object
) -> None:
    """The mean of `y` for each value of `line`, with a band where the axis is linear."""
    names = list(order)
    palette = sns.color_palette("husl" if len(names) > 10 else "colorblind", len(names))
    for name, colour in zip(names, palette, strict=True):
        grouped = rows[rows[line] == name].groupby(x)[y]
        mean, spread = grouped.mean(), grouped.std().fillna(0.0)
        ax.plot(mean.index, mean, color=colour, label=str(name), **look)
        if ax.get_yscale() == "linear":
            ends = mean - spread, mean + spread
            ax.fill_between(mean.index, *ends, color=colour, alpha=0.12, linewidth=0)


def _finish(figure: Figure, ax: Axes, path: Path) -> None:
    legend_below(figure, ax.get_legend_handles_labels()[0])
    figure.savefig(path, dpi=_DOTS_PER_INCH, format="png")
    plt.close(figure)
