r"""Tables as LaTeX with booktabs rules; papers require \usepackage{booktabs}."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

NONE = "\u2013"
_GREEK = {
    "\u03b1": "alpha",
    "\u03b2": "beta",
    "\u03b3": "gamma",
    "\u03b5": "epsilon",
    "\u03bb": "lambda",
}
# LaTeX code for characters that are special in LaTeX or missing from its text fonts.
_SPELLED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\u00a0": "~",
    "\u202f": r"\,",
    "\u2212": "$-$",
    NONE: "--",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{letter: rf"$\{name}$" for letter, name in _GREEK.items()},
}
# Maximum number of characters per line, in the first column and in titles.
_NAME, _TITLE = 16, 13


@dataclass(frozen=True)
class Cell:
    """A number and its interval without brackets ("" if there is no interval)."""

    value: str
    ends: str = ""

    def __str__(self) -> str:
        return f"{self.value} ({self.ends})" if self.ends else self.value


def escaped(text: object) -> str:
    """Escape LaTeX's special characters, and use true minus signs before numbers."""
    safe = "".join(_SPELLED.get(character, character) for character in str(text))
    return re.sub(r"(?<![\w-])-(?=\d)", "$-$", safe)


def tabular(table: pd.DataFrame, digits: int = 3) -> str:
    """Format a table as a LaTeX `tabular`; `digits` is the number of decimals of non-integers."""
    rows = [
        _row(escaped(_number(value, digits)) for value in row)
        for row in table.itertuples(index=False)
    ]
    return "\n".join(_tabular([_row(map(escaped, table.columns))], rows)) + "\n"


def column_table(table: pd.DataFrame, about: str, label: str, notes: Sequence[str] = ()) -> str:
    """Format a LaTeX `table`, 3.4 inches wide: names are wrapped, intervals are below numbers.

    Args:
        table: names in the first column, `Cell`s in the others.
        about: the caption.
        label: key for `\\ref` in the paper's text.
        notes: paragraphs below the table.
    """
    first, *others = table.columns
    head = _stacked([_wrapped(first, _NAME), *(_wrapped(each, _TITLE) for each in others)])
    rows = []
    for name, *cells in table.itertuples(index=False):
        parts = [_wrapped(name, _NAME), *map(_below, cells)]
        rows += [r"\addlinespace[2pt]"] * bool(rows) + _stacked(parts)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(about)}}}",
        rf"\label{{{label}}}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        *_tabular(head, rows),
        *(rf"\par\smallskip\parbox{{\linewidth}}{{\scriptsize {escaped(note)}}}" for note in notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _number(value: object, digits: int) -> object:
    if pd.isna(value):
        return NONE
    return f"{value:.{digits}f}" if isinstance(value, float) else value


def _wrapped(text: str, width: int) -> list[str]:
    broken = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [escaped(line) for line in broken]


def _below(cell: Cell) -> list[str]:
    ends = [rf"{{\scriptsize {escaped(cell.ends)}}}"] if cell.ends else []
    return [escaped(cell.value), *ends]


def _stacked(parts: Sequence[Sequence[str]]) -> list[str]:
    height = max(map(len, parts))
    return [
        _row(part[line] if line < len(part) else "" for part in parts) for line in range(height)
    ]


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _tabular(head: Sequence[str], rows: Sequence[str]) -> list[str]:
    columns = head[0].count(" & ")
    return [
        rf"\begin{{tabular}}{{@{{}}l{'r' * columns}@{{}}}}",
        r"\toprule",
        *head,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    ]
