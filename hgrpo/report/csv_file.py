"""Tables as CSV files that any reader takes apart as they were put together."""

from pathlib import Path

import pandas as pd


def write_csv(table: pd.DataFrame, path: Path, float_format: str | None = None) -> None:
    r"""Write a table without its index.

    A carriage return, which a policy may well sample, is written as the two signs \r: Python's csv
    before 3.13 leaves it without quotes, and readers take it for the end of a line.
    """
    returns = {
        name: column.map(lambda cell: str(cell).replace("\r", r"\r"), na_action="ignore")
        for name, column in table.items()
        if column.astype(str).str.contains("\r").any()
    }
    table.assign(**returns).to_csv(
        path, index=False, lineterminator="\n", float_format=float_format
    )
