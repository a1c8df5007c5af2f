"""The page's table of credit against ground truth, from the output of `credit_agreement`."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from hgrpo.errors import UserError, one_line
from hgrpo.evaluation.truth.measured import SHUFFLED
from hgrpo.report.figures.credit_truth import policy_name

TRUTH_CSV = "truth.csv"
# Displayed columns with an interval -> headings on the page.
SHOWN = {
    "advantage_pearson": "Correlation with the truth",
    "within_pearson": "within trajectories",
    "sign_accuracy": "Right sign",
    "cosine": "Cosine of the update",
}


@dataclass(frozen=True)
class Row:
    """A method's row in the table of credit against ground truth.

    Attributes:
        cells: for each of `SHOWN`, the value and its interval as text; "" if undefined.
        beats: "yes" if the method beats the shuffled truth, else "no"; "" if unknown.
        mine: the value of the column `mine`; False if the table has no such column.
    """

    label: str
    cells: list[tuple[str, str]]
    beats: str
    mine: bool


def truth_tables(folder: Path | None) -> list[dict]:
    """One table per policy with measured ground truth, the last policy first.

    Returns:
        Mappings with the keys `policy` (the policy's name) and `rows` (from `table_rows`). Empty if
        `folder` has no truth.csv.

    Raises:
        UserError: truth.csv is invalid.
    """
    path = folder / TRUTH_CSV if folder else None
    if path is None or not path.is_file():
        return []
    try:
        table = pd.read_csv(path)
        return [
            {"policy": policy_name(number), "rows": table_rows(table[table["round"] == number])}
            for number in sorted(table["round"].unique(), reverse=True)
        ]
    except (ValueError, KeyError, AttributeError) as error:
        raise UserError(f"{path}: expected a table of credit ({one_line(error)})") from None


def table_rows(table: pd.DataFrame) -> list[Row]:
    """Convert truth.csv to rows of the page: highest correlation first, shuffled truth last."""
    ranked = table.assign(last=table["method"] == SHUFFLED).sort_values(
        ["last", "advantage_pearson"], ascending=[True, False], kind="stable"
    )
    return [
        Row(
            row["label"],
            [_cell(row, name) for name in SHOWN],
            row["beats_shuffled"] if isinstance(row["beats_shuffled"], str) else "",
            row.get("mine", False) is True,
        )
        for _, row in ranked.iterrows()
    ]


def _cell(row: pd.Series, name: str) -> tuple[str, str]:
    value, lower, upper = row[name], row[f"{name}_lower"], row[f"{name}_upper"]
    if pd.isna(value):
        return "", ""
    return f"{value:.2f}", "" if pd.isna(lower) else f"{lower:.2f} to {upper:.2f}"
