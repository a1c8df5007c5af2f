"""Writes the comparison of credit with the truth: three tables and three figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hgrpo.evaluation.truth.measured import Played
from hgrpo.evaluation.truth.methods import joined, truth_tables
from hgrpo.evaluation.truth.update_settings import ArmUpdate
from hgrpo.report.csv_file import write_csv
from hgrpo.report.figures import credit_truth as figures
from hgrpo.report.style import Drawing

_DIGITS = "%.6g"


def write_truth(
    played: Sequence[Played],
    updates: Mapping[str, ArmUpdate],
    labels: Mapping[str, str],
    folder: Path,
) -> list[Drawing]:
    """Write truth.csv, truth_gradients.csv and truth_errors.csv; return the figures.

    Arguments are those of `report.credit_tables.write`.
    """
    tables = joined([truth_tables(each, updates, labels) for each in played])
    write_csv(tables.methods, folder / "truth.csv", _DIGITS)
    write_csv(tables.gradients, folder / "truth_gradients.csv", _DIGITS)
    write_csv(tables.errors, folder / "truth_errors.csv", _DIGITS)
    last = played[-1].rollouts.stored[0].round
    return [
        figures.closest(tables.methods),
        figures.updates(tables.gradients[tables.gradients["round"] == last]),
        figures.mistakes(tables.errors[tables.errors["round"] == last]),
    ]
