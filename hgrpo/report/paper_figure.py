"""Writes figures in the sizes of a paper: as wide as a column, and as wide as a page."""

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.text import Text

from hgrpo.report.style import RC, WIDTH, Drawing

# Widths in inches of a column and of the text of a two-column page, as most conferences have them.
SIZES = {"column": 3.4, "page": 7.0}
FORMATS = ("svg", "pdf")
# Letters have one size at both widths: that at which what fits the screen also fits a column.
_SMALLER = SIZES["column"] / WIDTH
# For ticks that appear when a figure changes its size.
_TICKS = {name: _SMALLER * RC[name] for name in ("xtick.labelsize", "ytick.labelsize")}
_PAPER = {**RC, **_TICKS, "pdf.fonttype": 42}  # letters stay letters, as journals ask


def save_sizes(drawing: Drawing, folder: Path) -> None:
    """Write a drawing in every size and format; the same drawing gives the same bytes."""
    figure = drawing.figure
    width, height = figure.get_size_inches()
    for text in figure.findobj(Text):
        text.set_fontsize(_SMALLER * text.get_fontsize())
    with matplotlib.rc_context({"svg.hashsalt": drawing.name, **_PAPER}):
        for size, inches in SIZES.items():
            # A wide figure need not be as high as its width suggests.
            figure.set_size_inches(inches, height * min(1, inches / width))
            for kind in FORMATS:
                dates = {"Date": None} if kind == "svg" else {"CreationDate": None}
                figure.savefig(
                    folder / f"{drawing.name}_{size}.{kind}",
                    facecolor="none",
                    metadata={"Creator": None, **dates},
                )
    plt.close(figure)
