"""Writes figures in the sizes of a paper: as wide as a column, and as wide as a page."""

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

from hgrpo.report.style import RC, Drawing

# Widths in inches of a column and of the text of a two-column page, as most conferences have them.
# Letters keep their size, so that all figures of a paper look alike.
SIZES = {"column": 3.4, "page": 7.0}
FORMATS = ("svg", "pdf")
_PAPER = {
    **RC,
    "figure.facecolor": "none",
    "pdf.fonttype": 42,  # letters stay letters, as journals ask
    **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), 8),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 7),
}


def save_sizes(drawing: Drawing, folder: Path) -> None:
    """Write a drawing in every size and format; the same drawing gives the same bytes."""
    figure = drawing.figure
    width, height = figure.get_size_inches()
    for text in figure.findobj(matplotlib.text.Text):
        text.set_fontsize(text.get_fontsize() * 0.8)
    for size, inches in SIZES.items():
        # A wide figure need not be as high as its width suggests.
        figure.set_size_inches(inches, height * min(1.15, inches / width))
        for kind in FORMATS:
            path = folder / f"{drawing.name}_{size}.{kind}"
            dates = {"Date": None} if kind == "svg" else {"CreationDate": None}
            with matplotlib.rc_context({"svg.hashsalt": drawing.name, **_PAPER}):
                figure.savefig(path, metadata={"Creator": None, **dates})
    plt.close(figure)
