"""Writes the tables of a study."""

from collections.abc import Mapping
from pathlib import Path

from hgrpo.atomic import atomic_file
from hgrpo.report.csv_file import write_csv
from hgrpo.sandbox.studies.results import ARMS, PAIRS, TABLES, read_rows, read_summary
from hgrpo.sandbox.studies.statistics import arm_table, markdown, pair_table
from hgrpo.sandbox.studies.study import SandboxStudy

_ARM_COLUMNS = ("metric", "arm", "n_seeds", "mean", "lower", "upper", "deviation", "reached")
_ARM_COLUMNS += ("published", "published_deviation", "far", "rollouts", "updates", "seconds")
_PAIR_COLUMNS = ("kind", "arm", "against", "of", "difference", "lower", "upper", "p_holm")
_PAIR_COLUMNS += ("p_equivalent_holm", "verdict", "published", "said", "claim")


def write_statistics(study: SandboxStudy, runs: Mapping[str, Path], target: Path) -> None:
    """Write arms.csv, pairs.csv and tables.md into the folder."""
    rows = read_rows(study, runs)
    seconds = {label: float(read_summary(folder)["seconds"]) for label, folder in runs.items()}
    arms, pairs = arm_table(study, rows, seconds), pair_table(study, rows)
    text = [markdown(arms, _ARM_COLUMNS)]
    if len(pairs):
        text.append(markdown(pairs, _PAIR_COLUMNS))
    for name, table in ((ARMS, arms), (PAIRS, pairs)):
        with atomic_file(target / name) as path:
            write_csv(table, path)
    with atomic_file(target / TABLES) as path:
        path.write_text("\n".join(text), encoding="utf-8")
