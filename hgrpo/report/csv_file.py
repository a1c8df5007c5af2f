"""Write CSV files that parse identically in all readers."""

from pathlib import Path

import pandas as pd


def write_csv(table: pd.DataFrame, path: Path, float_format: str | None = None) -> None:
    r"""Write a table without its index.

    A policy may sample carriage returns. They are escaped as the two characters \r, because before
    Python 3.13 the csv module writes them without quotes, and a reader would end the row there.
    """
    returns = {
        name: column.map(lambda cell: str(cell).replace("\r", r"\r"), na_action="ignore")
        for name, column in table.items()
        if column.astype(str).str.contains("\r").any()
    }
    table.assign(**returns).to_csv(
        path, index=False, lineterminator="\n", float_format=float_format
    )
