"""Tables as CSV files that any reader takes apart as they were put together."""

from pathlib import Path

import pandas as pd


def write_csv(table: pd.DataFrame, path: Path, float_format: str | None = None) -> None:
    r"""Write a table without its index.

    A carriage return, which a policy may well sample, is written as the two signs \r: Python's csv
    before 3.13 leaves it without quotes, and readers take it for the end of a line.
    """
    shown = table.map(lambda value: value.replace("\r", r"\r") if isinstance(value, str) else value)
    shown.to_csv(path, index=False, lineterminator="\n", float_format=float_format)
