"""Defines the names of a study's files, and reads them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from hgrpo import parquet
from hgrpo.errors import UserError, one_line
from hgrpo.sandbox.studies.study import SandboxStudy
from hgrpo.sandbox.studies.training import ROWS, SUMMARY

ARMS, PAIRS, TABLES, FIGURES = "arms.csv", "pairs.csv", "tables.md", "figures"
# Text columns, which may be entirely empty.
_TEXTS = ("of", "said", "verdict", "claim")


def read_rows(study: SandboxStudy, runs: Mapping[str, Path]) -> dict[str, pd.DataFrame]:
    """Read the log of every arm. `runs` maps each arm's label to the folder of its run.

    Raises:
        UserError: a run's file is missing or damaged.
    """
    arms = {}
    for label, folder in runs.items():
        try:
            rows = pd.read_parquet(folder / ROWS, **parquet.READ)
        except (OSError, ValueError) as error:
            raise UserError(f"{folder / ROWS}: not a table of a run ({one_line(error)})") from None
        if study.series:
            arm = study.again if label == study.other else label
            rows = rows[rows[study.series] == arm]
        arms[label] = rows.reset_index(drop=True)
    return arms


def read_summary(folder: Path) -> dict[str, Any]:
    """Read the summary of a run written by `train_arm`.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        return json.loads((folder / SUMMARY).read_bytes())
    except (OSError, ValueError) as error:
        raise UserError(f"{folder / SUMMARY}: not a summary of a run ({one_line(error)})") from None


def read_table(path: Path) -> pd.DataFrame:
    """Read a table written by `write_statistics`; empty if the study has no comparisons.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        table = pd.read_csv(path)
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a table of a study ({one_line(error)})") from None
    texts = {name: table[name].astype(object) for name in _TEXTS if name in table}
    return table.assign(
        **{name: column.where(column.notna(), "") for name, column in texts.items()}
    )
