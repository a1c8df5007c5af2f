"""Draws learning curves of runs from several studies or tools in one plot."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from hgrpo.report import style
from hgrpo.report.arms import COLOURS, LINES, MARKERS
from hgrpo.report.csv_file import write_csv


def draw(runs: Mapping[str, Sequence[Mapping]], out: Path) -> None:
    """Plot success and mean return by round, with a line per run, and write the data as CSV.

    Args:
        runs: rounds of each labelled run, with `round`, `avg_R` and `pct_success` (a fraction).
        out: output path of the plot; the suffix selects the format.
    """
    figure, axes = style.canvas(2, height=5.0, sharex=True)
    tables = []
    for number, (label, rounds) in enumerate(runs.items()):
        table = pd.DataFrame(rounds)[["round", "avg_R", "pct_success"]].sort_values("round")
        look = {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
            "linestyle": LINES[number // len(COLOURS) % len(LINES)],
        }
        for ax, column in zip(axes.flat, ("pct_success", "avg_R"), strict=True):
            ax.plot(table["round"], table[column], label=label, markersize=4, **look)
        tables.append(table.assign(run=label))
    style.percent_axis(axes[0, 0].yaxis)
    axes[0, 0].set_title("Success in evaluation")
    axes[1, 0].set_title("Mean return in evaluation")
    style.whole_numbers(axes[1, 0], "round")
    style.legend_below(figure, axes[0, 0].get_legend_handles_labels()[0])
    style.write(figure, out, out.name)
    plt.close(figure)
    write_csv(pd.concat(tables, ignore_index=True), out.with_suffix(".csv"))
