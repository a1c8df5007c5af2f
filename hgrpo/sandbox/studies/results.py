"""What the commands of a study read and write: rows of runs, tables and figures."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from hgrpo.atomic import atomic_file, atomic_folder
from hgrpo.errors import UserError, one_line
from hgrpo.parquet import READ
from hgrpo.report.csv_file import write_csv
from hgrpo.sandbox.studies.statistics import arm_table, markdown, noise_floor, pair_table
from hgrpo.sandbox.studies.study import SandboxStudy
from hgrpo.sandbox.studies.training import ROWS, SUMMARY

ARMS, PAIRS, TABLES, FIGURES = "arms.csv", "pairs.csv", "tables.md", "figures"
_ARM_COLUMNS = ("metric", "arm", "n_seeds", "mean", "lower", "upper", "deviation", "reached")
_ARM_COLUMNS += ("published", "published_deviation", "far", "rollouts", "updates", "seconds")
# Columns of texts, which may all be empty.
_TEXTS = ("of", "said", "verdict", "claim")
_PAIR_COLUMNS = ("kind", "arm", "against", "of", "difference", "lower", "upper", "p_holm")
_PAIR_COLUMNS += ("p_equivalent_holm", "verdict", "published", "said", "claim")


def read_rows(study: SandboxStudy, runs: Mapping[str, Path]) -> dict[str, pd.DataFrame]:
    """The rows of every arm by label; `runs` are the folders of their runs.

    Raises:
        UserError: a run's file is missing or damaged.
    """
    found = {}
    for label, folder in runs.items():
        try:
            rows = pd.read_parquet(folder / ROWS, **READ)
        except (OSError, ValueError) as error:
            raise UserError(f"{folder / ROWS}: no rows of a run ({one_line(error)})") from None
        if study.series:
            rows = rows[rows[study.series] == label.removesuffix(", other seeds")]
        found[label] = rows.reset_index(drop=True)
    return found


def read_summary(folder: Path) -> dict[str, Any]:
    """What `train_arm` said of a run.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        return json.loads((folder / SUMMARY).read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{folder / SUMMARY}: no summary of a run ({one_line(error)})") from None


def write_statistics(study: SandboxStudy, runs: Mapping[str, Path], target: Path) -> None:
    """Write arms.csv, pairs.csv and tables.md into the folder."""
    rows = read_rows(study, runs)
    seconds = {label: float(read_summary(folder)["seconds"]) for label, folder in runs.items()}
    arms, pairs = arm_table(study, rows, seconds), pair_table(study, rows)
    text = [markdown(arms, _ARM_COLUMNS)]
    if len(pairs):
        floor = noise_floor(pairs)
        text += [markdown(pairs, _PAIR_COLUMNS), f"Noise floor: {floor:.4g}\n"]
    for name, table in ((ARMS, arms), (PAIRS, pairs)):
        with atomic_file(target / name) as path:
            write_csv(table, path)
    with atomic_file(target / TABLES) as path:
        path.write_text("\n".join(text))


def write_figures(
    name: str,
    study: SandboxStudy,
    runs: Mapping[str, Path],
    settings: Mapping[str, Mapping[str, Any]],
    target: Path,
) -> None:
    """Write the study's figures, each with its CSV, and their index.

    Args:
        settings: of each arm, by label, those that figures read.
    """
    from hgrpo.report.figure_index import save_all
    from hgrpo.sandbox.studies.figures import ArmRows, drawings

    rows = read_rows(study, runs)
    declared = [label for label in rows if label != study.other]
    arms = {label: ArmRows(rows[label], settings.get(label, {})) for label in declared}
    with atomic_folder(target) as folder:
        save_all(drawings(name, study.figures, arms), folder)


def read_table(path: Path) -> pd.DataFrame:
    """A table that `write_statistics` wrote; without rows if the study compares nothing.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        return pd.read_csv(path, converters=dict.fromkeys(_TEXTS, str))
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: no table of a study ({one_line(error)})") from None
