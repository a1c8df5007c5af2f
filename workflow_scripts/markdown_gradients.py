"""The tables of an analysis of gradients, as rows of text; the first row has the titles."""

from collections.abc import Mapping

import pandas as pd

from hgrpo.evaluation.gradients.table import PASSES, REGULARISERS, TASK
from hgrpo.report.figures.gradients import TITLES
from hgrpo.report.words import DASH, MINUS, p_value

Tables = Mapping[str, pd.DataFrame]
PARTS = {TASK: "task", REGULARISERS: "KL and entropy"}
PLACES = {"lowest": "least", "highest": "most"}


def slopes(tables: Tables) -> list[list[str]]:
    """One line per policy: how the norms rise with the deviation of returns, of all groups."""
    table = tables["slopes"]
    lines = [["arm", "after round", *(f"{part}: slope, relative" for part in PARTS.values())]]
    table = table[table["pass"] == PASSES[0]]
    for (method, round_), own in table.groupby(["method", "round"], sort=False):
        rows = own.set_index("component")
        lines.append([method, str(round_), *(interval(rows.loc[p], "relative") for p in PARTS)])
    return lines


def dominance(tables: Tables) -> list[list[str]]:
    """One line per policy, pass and place: squared norms, the regularisers' minus the task's."""
    titles = ["arm", "after round", "groups", "returns differ", "regularisers minus task, squared"]
    lines = [[*titles, "p, Holm", "verdict"]]
    for row in tables["dominance"].to_dict("records"):
        place, groups = PLACES[row["place"]], TITLES[row["pass"]]
        found = [interval(row, "difference"), p_value(row["p_holm"]), row["verdict"]]
        lines.append([row["method"], str(row["round"]), groups, place, *found])
    return lines


def interval(row: Mapping, name: str) -> str:
    """`1.2 (0.9 to 1.5)`, with three digits; a dash without a value."""
    value, lower, upper = (row[f"{name}{end}"] for end in ("", "_lower", "_upper"))
    if pd.isna(value):
        return DASH
    ends = "" if pd.isna(lower) else f" ({lower:.3g} to {upper:.3g})"
    return f"{value:.3g}{ends}".replace("-", MINUS)
