"""The table of results as a paper prints it: one row per arm, as LaTeX or Markdown."""

import pandas as pd

from hgrpo.evaluation.comparison import Comparison
from hgrpo.evaluation.endpoint import endpoint_name
from hgrpo.report.arms import Arms
from hgrpo.report.endpoint_words import endpoint_phrase
from hgrpo.report.words import temperature_name

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    character: f"\\{character}" for character in "&%$#_{}"
}


def paper_table(comparison: Comparison, arms: Arms) -> pd.DataFrame:
    """One row per arm, highest score first: endpoint and differences with intervals, in points.

    The columns of differences are there if the arms were compared; a star marks a verdict that
    holds after Holm's correction.
    """
    own = endpoint_name(comparison.protocol.settings.endpoint)
    score = comparison.protocol.settings.score
    table = comparison.endpoints
    table = table[(table["endpoint"] == own) & (table["score"] == score)]
    families = {}
    if len(comparison.against_reference):
        families[f"against {arms.label(arms.reference)}"] = comparison.against_reference
    if len(comparison.against_untrained):
        best = temperature_name(comparison.best_temperature).replace("\u202f", " ")
        families[f"against {arms.label(arms.untrained)}, {best}"] = comparison.against_untrained
    level = f"{100 * comparison.protocol.level:g} % interval"
    rows = []
    for row in table.sort_values("mean", ascending=False, kind="stable").itertuples():
        name = arms.label(row.method)
        if not arms[row.method].trained:
            name += f", {temperature_name(row.temperature)}".replace("\u202f", " ")
        shown = {"method": name, f"{endpoint_phrase(comparison)} ({level})": _interval(row)}
        for title, family in families.items():
            mine = (
                family[family["method"] == row.method] if row.temperature == 0 else family.head(0)
            )
            shown[title] = _difference(mine.iloc[0]) if len(mine) else "--"
        rows.append(shown)
    return pd.DataFrame(rows)


def _interval(row: object) -> str:
    return f"{100 * row.mean:.1f} ({100 * row.lower:.1f} to {100 * row.upper:.1f})"


def _difference(row: pd.Series) -> str:
    star = "*" if row["verdict"] in ("better", "worse") else ""
    ends = f"{100 * row['lower']:+.1f} to {100 * row['upper']:+.1f}"
    return f"{100 * row['difference']:+.1f}{star} ({ends})"


def latex(table: pd.DataFrame, caption: str, label: str) -> str:
    r"""A `table` environment with booktabs' rules; needs \usepackage{booktabs}."""
    head = " & ".join(map(escaped, table.columns)) + r" \\"
    body = [" & ".join(map(escaped, row)) + r" \\" for row in table.astype(str).to_numpy()]
    columns = "l" + "r" * (len(table.columns) - 1)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(caption)}}}",
        rf"\label{{{label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: object) -> str:
    """Text in which no character means anything to LaTeX."""
    return "".join(_LATEX.get(character, character) for character in str(text))


def markdown(table: pd.DataFrame) -> str:
    """The table in Markdown."""
    rows = [list(table.columns), *table.astype(str).to_numpy().tolist()]
    cells = [[str(cell).replace("|", r"\|") for cell in row] for row in rows]
    rule = ["---", *["---:"] * (len(table.columns) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [cells[0], rule, *cells[1:]])
