"""Style of all figures, and deterministic SVG output."""

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
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

from hgrpo.errors import UserError
from hgrpo.evaluation.statistics import DECIDED
from hgrpo.report.arms import Arm
from hgrpo.report.csv_file import write_csv

# On pages, these four colours are replaced by those of the light or dark theme.
INK, MUTED, GRID, PAPER = "#23272d", "#6b727b", "#dfe3e7", "#fdfefe"
# Figure width in inches. Figures are legible on a phone, and two fit side by side on a desktop.
WIDTH = 4.7
# With more trained arms than this, labels, seeds and intervals do not fit into one set of axes.
MANY = 8
# Minimum range of an axis of fractions. On a smaller range, ticks rounded to whole per cent would
# have equal labels.
LEAST = 0.05

INDEX = "index.json"  # list of a folder's figures
RC = {
    # Texts of games may contain dollar signs, which must not start a formula.
    "text.parse_math": False,
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "axes.titlesize": 10.5,
    **dict.fromkeys(("font.size", "axes.labelsize"), 10),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 9),
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    **dict.fromkeys(("text.color", "axes.titlecolor", "axes.labelcolor"), INK),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
    "grid.color": GRID,
    "axes.facecolor": "none",
    "figure.facecolor": PAPER,
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "lines.linewidth": 1.6,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Drawing:
    """A figure with its data.

    Attributes:
        name: name of the figure's files, without suffix.
        section: section of the page with the figure.
        alt: alternative text.
    """

    name: str
    section: str
    title: str
    caption: str
    alt: str
    figure: Figure
    data: pd.DataFrame


def canvas(
    rows: int = 1, columns: int = 1, height: float = 3.2, grid: str = "y", **options: object
) -> tuple[Figure, np.ndarray]:
    """Create a figure in this style, and its axes [rows, columns].

    Args:
        height: the figure's height in inches.
        grid: axis with grid lines, "x" or "y"; "" for no grid.
    """
    sns.set_theme(style="ticks", rc=RC)
    figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, height), squeeze=False, **options)
    for ax in axes.flat if grid else ():
        ax.grid(axis=grid, linewidth=0.7)
        ax.set_axisbelow(True)
    return figure, axes


def notice(text: str, height: float = 1.1) -> Figure:
    """Create a placeholder figure with grey text."""
    figure, axes = canvas(height=height, grid="")
    axes[0, 0].set_axis_off()
    axes[0, 0].text(0.5, 0.5, text, ha="center", va="center", color=MUTED)
    return figure


def write(figure: Figure, path: Path, salt: str, rc: Mapping = RC, **options: object) -> None:
    """Write a figure as SVG or PDF. The same figure and `salt` give the same bytes."""
    date = "Date" if path.suffix == ".svg" else "CreationDate"
    with matplotlib.rc_context({"svg.hashsalt": salt, **rc}):
        figure.savefig(path, metadata={date: None, "Creator": None}, **options)


def save(drawing: Drawing, folder: Path) -> None:
    """Write <name>.svg and <name>.csv, byte-identical for equal drawings."""
    (folder / drawing.name).parent.mkdir(exist_ok=True)
    write(drawing.figure, folder / f"{drawing.name}.svg", drawing.name)
    plt.close(drawing.figure)
    write_csv(drawing.data, folder / f"{drawing.name}.csv")


def save_all(drawn: Iterable[Drawing], folder: Path) -> list[dict]:
    """Write each drawing, then an index of names and texts; return the index."""
    index = []
    for drawing in drawn:
        save(drawing, folder)
        index.append({key: text for key, text in vars(drawing).items() if isinstance(text, str)})
    text = json.dumps(index, indent=1, ensure_ascii=False) + "\n"
    (folder / INDEX).write_text(text, encoding="utf-8")
    return index


def read_index(folder: Path) -> list[dict]:
    """Read the index that `save_all` wrote; UserError if it is missing or damaged."""
    try:
        return json.loads((folder / INDEX).read_bytes())
    except FileNotFoundError:
        raise UserError(f"{folder}: {INDEX} not found; run the stage `figures` first") from None
    except json.JSONDecodeError as error:
        raise UserError(f"{folder / INDEX}: this is not an index of figures ({error})") from None


def percent_axis(axis: matplotlib.axis.Axis, symbol: str = " %") -> None:
    """Label the ticks with 100 times their value, without decimals, followed by `symbol`.

    The range of the axis is at least `LEAST`, even if all values are equal.
    """
    axis.set_major_locator(matplotlib.ticker.MaxNLocator("auto", steps=[1, 2, 5, 10]))
    axis.set_major_formatter(matplotlib.ticker.PercentFormatter(1, decimals=0, symbol=symbol))
    ends = wide_enough(*axis.get_data_interval())
    across = axis.axis_name == "x"
    # Set data limits instead of view limits. Later lines and shared axes can then widen the view.
    axis.axes.update_datalim([(end, end) for end in ends], updatex=across, updatey=not across)
    axis.axes.autoscale_view(scalex=across, scaley=not across)


def wide_enough(low: float, high: float) -> tuple[float, float]:
    """Widen an interval to at least `LEAST`; an interval within [0, 1] stays within [0, 1]."""
    if not np.isfinite([low, high]).all():
        return 0.0, LEAST
    if high - low >= LEAST:
        return low, high
    start = (low + high - LEAST) / 2
    if low >= 0:
        start = max(0.0, start)
    if high <= 1:
        start = min(1 - LEAST, start)
    return start, start + LEAST


def log_axis(axis: matplotlib.axis.YAxis) -> None:
    """Set a logarithmic vertical scale with few ticks, labelled in plain numbers."""
    axis.axes.set_yscale("log")
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 3), numticks=7))
    axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def log_axis_from_zero(axis: matplotlib.axis.XAxis, first: float) -> None:
    """Set a horizontal scale that is linear from 0 to `first` and logarithmic beyond."""
    axis.axes.set_xscale("symlog", linthresh=first, linscale=0.5)
    axis.axes.set_xlim(left=0)
    top = axis.axes.get_xlim()[1]
    tens = 10.0 ** np.arange(np.ceil(np.log10(first)), np.log10(top) + 1)
    ticks = [0.0, first, *(tick for tick in tens if 2 * first < tick <= top)]
    axis.set_ticks(ticks, [f"{tick:,.0f}" if tick >= 100 else f"{tick:.3g}" for tick in ticks])
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def whole_numbers(ax: Axes, label: str, **look: object) -> None:
    """Label the horizontal axis, and put ticks only at integers."""
    ax.set_xlabel(label, **look)
    ax.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(integer=True, min_n_ticks=1))


def interval_dots(
    ax: Axes,
    places: Sequence[float],
    table: pd.DataFrame,
    arm: Arm,
    across: bool = False,
    columns: tuple[str, str, str] = ("success", "lower", "upper"),
    **look: object,
) -> None:
    """Draw an arm's success, or another measure: a dot with an interval for each row of `table`.

    `columns` are the columns of the measure and of its lower and upper ends. The measure is on the
    vertical axis, or on the horizontal axis if `across` is true. `places` are the positions on the
    other axis.
    """
    success = table[columns[0]].to_numpy()
    ends = np.abs(table[list(columns[1:])].to_numpy().T - success)
    look = {"fmt": arm.marker, "color": arm.colour, "markersize": 5, "elinewidth": 1} | look
    if across:
        ax.errorbar(success, places, xerr=ends, **look)
    else:
        ax.errorbar(places, success, yerr=ends, **look)


def difference_intervals(
    ax: Axes,
    table: pd.DataFrame,
    labels: Sequence[str],
    texts: Iterable[str],
    looks: Iterable[tuple[str, str]],
) -> None:
    """Draw a horizontal interval per row of a table, the first row on top, and a line at zero.

    Rows with the verdict better or worse have a filled point and bold text. Other rows have a
    hollow point and grey text.

    Args:
        table: columns verdict, difference, lower and upper; the last three are fractions, which
            are drawn as percentage points.
        labels, texts: text to the left and to the right of each row.
        looks: colour and marker of each row.
    """
    ax.axvline(0, color=INK, linewidth=1)
    rows = zip(table.itertuples(), texts, looks, strict=True)
    for y, (row, text, (colour, marker)) in enumerate(rows):
        decided = row.verdict in DECIDED
        fill = colour if decided else "none"
        ax.plot([100 * row.lower, 100 * row.upper], [y, y], color=colour, linewidth=2)
        ax.plot(100 * row.difference, y, marker, color=colour, markersize=7, markerfacecolor=fill)
        look = {"color": INK, "fontweight": "bold"} if decided else {"color": MUTED}
        ax.annotate(
            text,
            (1.0, y),
            xycoords=("axes fraction", "data"),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            annotation_clip=False,
            **look,
        )
    ax.set_yticks(np.arange(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def cell_rows(ax: Axes, labels: Sequence[str], fontsize: float) -> None:
    """Prepare axes for unit cells, one row per label from the top; hide tick marks and frame."""
    ax.set_yticks(np.arange(len(labels)) + 0.5, labels, fontsize=fontsize)
    ax.set_ylim(len(labels), 0)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def wrap(label: str, width: int = 16) -> str:
    """Wrap a label at whole words."""
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
    """Draw a legend below the figure, with at most `columns` columns, fewer if they do not fit.

    The figure grows by one line per legend row beyond the second, so that the axes keep their size.
    """
    labels = [handle.get_label() for handle in handles]
    size = RC["legend.fontsize"] if len(labels) <= MANY else 8
    between, around = 1.2 * size, 3.2 * size  # in points: between columns, and around a label
    widest = max(text_width(label, size) for label in labels) + around
    room = WIDTH * 72 - 8
    columns = max(1, min(columns, len(labels), int((room + between) / (widest + between))))
    rows = -(-len(labels) // columns)
    figure.legend(
        handles=list(handles),
        loc="outside lower center",
        ncols=columns,
        fontsize=size,
        columnspacing=between / size,
    )
    figure.set_figheight(figure.get_figheight() + max(0, rows - 2) * 1.55 * size / 72)
