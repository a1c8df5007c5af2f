"""How wide LaTeX sets a table, by the letters of Computer Modern; nothing is compiled."""

import re
from pathlib import Path

import matplotlib
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

FONT = FontProperties(fname=Path(matplotlib.get_data_path(), "fonts/ttf/cmr10.ttf"))
# cmr10 is the font of 10 points; small letters are wider for their size: those of cmr8 and cmr7.
WIDER = {10: 1.0, 8: 1.062, 7: 1.139}
SHOWN = {"$-$": "+", "--": "-", "~": " ", r"\,": " ", r"\_": "_", r"\%": "%"}


def column_inches(latex: str) -> float:
    """Width of a `tabular` in inches; `\\footnotesize` gives it letters of 8 points."""
    size, gap = (8, 3) if r"\footnotesize" in latex else (10, 6)
    body = latex.split(r"\toprule")[1].split(r"\bottomrule")[0]
    rows = [line.removesuffix(r" \\").split(" & ") for line in body.splitlines() if " & " in line]
    widest = [max(width(cell, size) for cell in column) for column in zip(*rows, strict=True)]
    # `@{}` leaves out the gaps at both ends.
    return (sum(widest) + 2 * gap * (len(widest) - 1)) / 72.27


def width(cell: str, size: int) -> float:
    """Width of a cell in points."""
    if small := re.fullmatch(r"\{\\scriptsize (.*)\}", cell.strip()):
        cell, size = small.group(1), 7
    for command, character in SHOWN.items():
        cell = cell.replace(command, character)
    text = cell.strip()
    if not text:
        return 0.0
    drawn = TextPath((0, 0), text, size=size, prop=FONT).get_extents().width
    return drawn * WIDER[size]
