"""Writes figures and the results table in sizes and formats for papers."""

import re
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.text import Text

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.endpoint import endpoint_name
from hgrpo.evaluation.outcomes import GREEDY
from hgrpo.evaluation.statistics import DECIDED
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import MEASURES, endpoint_phrase
from hgrpo.report.latex import NONE, Cell
from hgrpo.report.style import RC, WIDTH, Drawing, write
from hgrpo.report.words import in_points, opponent, pooled_twin

_STAR = "* significant after Holm's correction"
# Widths in inches of a column and of the full text in typical two-column conference styles.
SIZES = {"column": 3.4, "page": 7.0}
FORMATS = ("svg", "pdf")
# The report's font sizes are multiplied by this factor in figures of either width.
_SMALLER = SIZES["column"] / WIDTH
# matplotlib creates new ticks when a figure is resized. These ticks also need the smaller font.
_TICKS = {name: _SMALLER * RC[name] for name in ("xtick.labelsize", "ytick.labelsize")}
_PAPER = {**RC, **_TICKS, "pdf.fonttype": 42}  # embed TrueType fonts, as journals require


def paper_table(comparison: Comparison, arms: Arms) -> pd.DataFrame:
    """One row per arm, highest score first, with endpoint, differences and intervals in points.

    Columns of differences exist if the arms were compared. A star marks a difference that is
    significant after Holm's correction.
    """
    declared = endpoint_name(comparison.protocol.settings.endpoint)
    score = comparison.protocol.settings.score
    table = comparison.endpoints
    table = table[(table["endpoint"] == declared) & (table["score"] == score)]
    families = {}
    if len(comparison.against_reference):
        families[f"against {arms.label(arms.reference)}"] = comparison.against_reference
    if len(comparison.against_untrained):
        best = opponent(arms, arms.untrained, comparison.best_temperature)
        families[f"against {best}"] = comparison.against_untrained
    rows = []
    for row in table.sort_values("mean", ascending=False, kind="stable").itertuples():
        name = opponent(arms, row.method, row.temperature)
        ends = _ends(row.lower, row.upper, "{:.1f} to {:.1f}")
        level = Cell(f"{in_points(row.mean):.1f}", ends)
        cells = {"method": name, MEASURES[score].name: level}
        for title, family in families.items():
            mine = family[(family["method"] == row.method) & (row.temperature == GREEDY)]
            cells[title] = _difference(mine.iloc[0]) if len(mine) else Cell(NONE)
        rows.append(cells)
    return pd.DataFrame(rows)


def caption(comparison: Comparison, arms: Arms) -> str:
    """The table's caption."""
    number = comparison.seeds["seed"].nunique()
    seeds = f"{number} seed{'s' if number > 1 else ''}"
    percent = " in per cent" if comparison.protocol.settings.score == "success" else ""
    phrase = endpoint_phrase(comparison)
    level = f"{100 * comparison.protocol.level:g} %"
    families = comparison.against_reference, comparison.against_untrained
    has_verdicts = any("p_holm" in each and each["p_holm"].notna().any() for each in families)
    intervals = f"with {level} intervals" if number > 1 else "one run of each arm"
    return (
        f"{phrase[0].upper()}{phrase[1:]}{percent}, {intervals}: "
        f"{comparison.n_test} test tasks, {seeds}, greedy play "
        f"unless a temperature is stated. Differences are in points and paired by seed and task; "
        f"{_STAR if has_verdicts else 'there are too few seeds for verdicts'}."
        f"{pooled_twin(comparison, arms)}"
    )


def _difference(row: pd.Series) -> Cell:
    star = "*" if row["verdict"] in DECIDED else ""
    ends = _ends(row["lower"], row["upper"], "{:+.1f} to {:+.1f}")
    return Cell(f"{in_points(row['difference']):+.1f}{star}", ends)


def _ends(lower: float, upper: float, form: str) -> str:
    return "" if pd.isna(lower) else form.format(in_points(lower), in_points(upper))


def markdown(table: pd.DataFrame, paragraphs: Sequence[str]) -> str:
    """The table in Markdown, followed by the paragraphs."""
    rows = [list(table.columns), *table.astype(str).to_numpy().tolist()]
    cells = [[_escaped(cell) for cell in row] for row in rows]
    rule = ["---", *["---:"] * (len(table.columns) - 1)]
    lines = "".join(f"| {' | '.join(row)} |\n" for row in [cells[0], rule, *cells[1:]])
    return lines + "".join(f"\n{_escaped(text)}\n" for text in paragraphs)


def _escaped(text: object) -> str:
    return re.sub(r"([|*_`<\\])", r"\\\1", str(text))


def save_sizes(drawing: Drawing, folder: Path) -> None:
    """Write a drawing in every size and format, byte-identical for equal drawings."""
    figure = drawing.figure
    width, height = figure.get_size_inches()
    for text in figure.findobj(Text):
        text.set_fontsize(_SMALLER * text.get_fontsize())
    for size, inches in SIZES.items():
        # Full-width figures keep the original height.
        figure.set_size_inches(inches, height * min(1, inches / width))
        for kind in FORMATS:
            path = folder / f"{drawing.name}_{size}.{kind}"
            write(figure, path, drawing.name, _PAPER, facecolor="none")
    plt.close(figure)
