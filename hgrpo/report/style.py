"""How every figure looks, and how it is written: vector SVG with the same bytes every time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# The page replaces these four by the reader's light or dark theme.
INK, MUTED, GRID, PAPER = "#23272d", "#6b727b", "#dfe3e7", "#fdfefe"
WIDTH = 4.7  # inches: legible on a phone held upright, two abreast on a desk

RC = {
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
    """A figure with the numbers it was drawn from.

    Attributes:
        name: of its files, without ending.
        section: of the page where it belongs.
        title, caption: for people who see it. alt: for people who do not.
        figure: drawn. data: its CSV.
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
    """A figure in the house style and its axes [rows, columns]; `height` in inches."""
    sns.set_theme(style="ticks", rc=RC)
    figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, height), squeeze=False, **options)
    for ax in axes.flat:
        ax.grid(axis="y", linewidth=0.7)
        ax.set_axisbelow(True)
    return figure, axes


def save(drawing: Drawing, folder: Path) -> None:
    """Write <name>.svg and <name>.csv; the same drawing gives the same bytes."""
    with matplotlib.rc_context({"svg.hashsalt": drawing.name, **RC}):
        drawing.figure.savefig(
            folder / f"{drawing.name}.svg", metadata={"Date": None, "Creator": None}
        )
    plt.close(drawing.figure)
    drawing.data.to_csv(folder / f"{drawing.name}.csv", index=False, lineterminator="\n")


def percent_axis(axis: matplotlib.axis.Axis) -> None:
    """Show fractions as percent."""
    axis.set_major_formatter(matplotlib.ticker.PercentFormatter(1, decimals=0, symbol=" %"))


def whole_numbers(axis: matplotlib.axis.Axis) -> None:
    """Ticks at whole numbers only: there is no batch 1.5."""
    axis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True, min_n_ticks=1))


def label_ends(
    ax: Axes, ends: Sequence[tuple[str, float, float, str]], gap: float = 0.075, offset: float = 5
) -> None:
    """Write each line's name at its right end, moved apart where they would overlap.

    Args:
        ends: (text, x, y, colour) per line, in data coordinates.
        gap: least distance between two names, as a share of the axis height.
        offset: of the names from the axis, in points.
    """
    if not ends:
        return
    low, high = ax.get_ylim()
    wanted = sorted(ends, key=lambda end: end[2])
    heights = np.array([(y - low) / (high - low) for _, _, y, _ in wanted])
    placed = _spread(heights, gap)
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


def _spread(heights: np.ndarray, gap: float) -> np.ndarray:
    """Sorted heights moved as little as needed to be `gap` apart, clusters kept centred."""
    clusters = [[height, 1] for height in heights]
    merged = True
    while merged:
        merged = False
        for i in range(len(clusters) - 1):
            (low, m), (high, n) = clusters[i], clusters[i + 1]
            if high - low < gap * (m + n) / 2 - 1e-12:
                clusters[i : i + 2] = [[(low * m + high * n) / (m + n), m + n]]
                merged = True
                break
    return np.concatenate(
        [centre + gap * (np.arange(size) - (size - 1) / 2) for centre, size in clusters]
    )
