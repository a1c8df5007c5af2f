"""Format the tables of a gradient analysis as rows of text; the first row has the titles."""

from collections.abc import Mapping

import pandas as pd

from hgrpo.evaluation.gradients.table import REGULARISERS, TASK
from hgrpo.report.figures.gradients import TITLES
from hgrpo.report.gradients_page import PLACES, number
from hgrpo.report.words import DASH, p_value

Tables = Mapping[str, pd.DataFrame]
PARTS = {TASK: "task", REGULARISERS: "KL and entropy"}


def slopes(tables: Tables) -> list[list[str]]:
    """One row per policy, pass and loss component.

    A row has the slope from the regression of the squared gradient norm on the standard deviation
    of returns.
    """
    titles = ["arm", "after round", "groups", "part", "mean square", "slope of the squared norm"]
    lines = [[*titles, "p", "p, Holm", "verdict"]]
    table = tables["slopes"]
    for row in table[table["component"].isin(list(PARTS))].to_dict("records"):
        cells = [number(row["mean"]), interval(row, "slope"), p_value(row["p"])]
        where = [row["method"], str(row["round"]), TITLES[row["pass"]], PARTS[row["component"]]]
        lines.append([*where, *cells, p_value(row["p_holm"]), row["verdict"]])
    return lines


def dominance(tables: Tables) -> list[list[str]]:
    """One row per policy, pass and bucket.

    A row has the squared gradient norm of the regularisers minus that of the task.
    """
    titles = ["arm", "after round", "groups", "returns differ"]
    lines = [[*titles, "squared norm, regularisers minus task", "p, Holm", "verdict"]]
    for row in tables["dominance"].to_dict("records"):
        place, groups = PLACES[row["place"]], TITLES[row["pass"]]
        cells = [interval(row, "difference"), p_value(row["p_holm"]), row["verdict"]]
        lines.append([row["method"], str(row["round"]), groups, place, *cells])
    return lines


def interval(row: Mapping, name: str) -> str:
    """Format as `1.2 (0.9 to 1.5)`, with three significant digits; NaN is a dash."""
    value, lower, upper = (row[f"{name}{end}"] for end in ("", "_lower", "_upper"))
    if pd.isna(value):
        return DASH
    ends = "" if pd.isna(lower) else f" ({number(lower)} to {number(upper)})"
    return f"{number(value)}{ends}"
