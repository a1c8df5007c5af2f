"""The look of every figure, and writing it as SVG with the same bytes every time."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from hgrpo.report.csv_file import write_csv

# The page replaces these four by the colours of the reader's light or dark theme.
INK, MUTED, GRID, PAPER = "#23272d", "#6b727b", "#dfe3e7", "#fdfefe"
WIDTH = 4.7  # inches: legible on an upright phone, two side by side on a desktop
# With more trained arms, one set of axes has no room for names, seeds and intervals.
MANY = 8

RC = {
    # Texts of games and shops may contain dollar signs, which must not start a formula.
    "text.parse_math": False,
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "text.color": INK,
    "axes.titlecolor": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "axes.facecolor": "none",
    "figure.facecolor": PAPER,
    "lines.linewidth": 1.6,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Drawing:
    """A figure with its numbers.

    Attributes:
        name: name of its files, without suffix.
        section: section of the page.
        title, caption: for readers who see the figure.
        alt: for readers who do not.
        figure: the drawn figure.
        data: its numbers, written as CSV.
    """

    name: str
    section: str
    title: str
    caption: str
    alt: str
    figure: Figure
    data: pd.DataFrame


def canvas(
    rows: int = 1, columns: int = 1, height: float = 3.2, **options: object
) -> tuple[Figure, np.ndarray]:
    """A figure in this style, and its axes [rows, columns]; `height` is in inches."""
    sns.set_theme(style="ticks", rc=RC)
    figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, height), squeeze=False, **options)
    for ax in axes.flat:
        ax.grid(axis="y", linewidth=0.7)
        ax.set_axisbelow(True)
    return figure, axes


def save(drawing: Drawing, folder: Path) -> None:
    """Write <name>.svg and <name>.csv; the same drawing gives the same bytes."""
    (folder / drawing.name).parent.mkdir(exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": drawing.name, **RC}):
        drawing.figure.savefig(
            folder / f"{drawing.name}.svg", metadata={"Date": None, "Creator": None}
        )
    plt.close(drawing.figure)
    write_csv(drawing.data, folder / f"{drawing.name}.csv")


def percent_axis(axis: matplotlib.axis.Axis, symbol: str = " %") -> None:
    """Show fractions as percent without decimals; symbol "" shows them as points."""
    axis.set_major_locator(matplotlib.ticker.MaxNLocator("auto", steps=[1, 2, 5, 10]))
    axis.set_major_formatter(matplotlib.ticker.PercentFormatter(1, decimals=0, symbol=symbol))


def log_axis(axis: matplotlib.axis.YAxis) -> None:
    """A logarithmic vertical scale with few ticks, labelled in plain numbers."""
    axis.axes.set_yscale("log")
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 3), numticks=7))
    axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def whole_numbers(axis: matplotlib.axis.Axis) -> None:
    """Put ticks only at whole numbers: there is no batch 1.5."""
    axis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True, min_n_ticks=1))


def difference_rows(ax: Axes, labels: Sequence[str], title: str) -> None:
    """Prepare axes for one horizontal interval per label, the first on top; zero is a line."""
    ax.grid(False)
    ax.grid(axis="x", linewidth=0.7)
    ax.axvline(0, color=INK, linewidth=1)
    ax.set_title(title)
    ax.set_yticks(np.arange(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def difference_interval(
    ax: Axes,
    y: int,
    interval: tuple[float, float, float],
    said: str,
    decided: bool,
    colour: str,
    marker: str = "o",
) -> None:
    """Draw a difference with its interval in row `y`, and text at the right edge.

    Args:
        interval: lower end, difference and upper end, in points.
        said: the text at the right edge.
        decided: draw a filled point and bold text; otherwise a hollow point and grey text.
    """
    lower, difference, upper = interval
    ax.plot([lower, upper], [y, y], color=colour, linewidth=2)
    ax.plot(
        difference,
        y,
        marker,
        color=colour,
        markersize=7,
        markerfacecolor=colour if decided else "none",
    )
    ax.annotate(
        said,
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


def wrap(label: str, width: int = 16) -> str:
    """Break a label into as many lines as it needs, without cutting words."""
    return textwrap.fill(label, width, break_long_words=False, break_on_hyphens=False)


def text_width(text: str, size: float) -> float:
    """Width of the widest line, in points."""
    font = FontProperties(family=RC["font.sans-serif"])
    lines = [line for line in text.split("\n") if line.strip()]
    return max(
        (TextPath((0, 0), line, size=size, prop=font).get_extents().width for line in lines),
        default=0.0,
    )


def legend_below(figure: Figure, handles: Sequence[Artist], columns: int = 3) -> None:
    """Draw a legend under the figure, in as many columns as fit.

    The figure grows by one line per legend row beyond the second, so the axes keep their size.
    """
    labels = [handle.get_label() for handle in handles]
    size = RC["legend.fontsize"] if len(labels) <= MANY else 8
    between, around = 1.2 * size, 3.2 * size  # gap of columns; handle with its margins
    wanted = max(text_width(label, size) for label in labels) + around
    room = WIDTH * 72 - 8
    columns = max(1, min(columns, len(labels), int((room + between) / (wanted + between))))
    rows = -(-len(labels) // columns)
    figure.legend(
        handles=list(handles),
        loc="outside lower center",
        ncols=columns,
        fontsize=size,
        columnspacing=between / size,
    )
    figure.set_figheight(figure.get_figheight() + max(0, rows - 2) * 1.55 * size / 72)


def crowded(texts: Sequence[str], gap: float = 0.075) -> bool:
    """Whether labels at line ends would need too much height, or too much of the width."""
    height = gap * sum(text.count("\n") + 1 for text in texts)
    return height > 1 or max(text_width(text, 9) for text in texts) > 0.36 * WIDTH * 72


def label_ends(
    ax: Axes, ends: Sequence[tuple[str, float, float, str]], gap: float = 0.075, offset: float = 5
) -> None:
    """Write each line's name at its right end, and move names apart that would overlap.

    Args:
        ends: (text, x, y, colour) per line, in data coordinates.
        gap: height of one line of text, as a share of the axis height.
        offset: distance of the names from the axis, in points.
    """
    if not ends:
        return
    low, high = ax.get_ylim()
    wanted = sorted(ends, key=lambda end: end[2])
    heights = np.array([(y - low) / (high - low) for _, _, y, _ in wanted])
    sizes = gap * np.array([text.count("\n") + 1 for text, _, _, _ in wanted])
    placed = _spread(heights, sizes)
    for (text, _, _, colour), height in zip(wanted, placed, strict=True):
        ax.annotate(
            text,
            (1.0, height),
            xycoords="axes fraction",
            xytext=(offset, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=9,
            annotation_clip=False,
        )


def _spread(heights: np.ndarray, sizes: np.ndarray | float) -> np.ndarray:
    """Move sorted heights as little as possible so that boxes of these sizes do not overlap.

    Touching boxes form a cluster, which stays centred on the wanted heights of its members.
    """
    sizes = np.broadcast_to(sizes, heights.shape)
    clusters = [[height, size, [size]] for height, size in zip(heights, sizes, strict=True)]
    merged = True
    while merged:
        merged = False
        for i in range(len(clusters) - 1):
            (low, m, lower), (high, n, upper) = clusters[i], clusters[i + 1]
            if high - low < (m + n) / 2 - 1e-12:
                clusters[i : i + 2] = [[(low * m + high * n) / (m + n), m + n, lower + upper]]
                merged = True
                break
    return np.concatenate(
        [
            centre - total / 2 + np.cumsum(members) - np.array(members) / 2
            for centre, total, members in clusters
        ]
    )
