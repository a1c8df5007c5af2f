"""Writes the figures of a study."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hgrpo.atomic import atomic_folder
from hgrpo.report.figure_index import save_all
from hgrpo.sandbox.studies.figures import ArmRows, drawings
from hgrpo.sandbox.studies.results import read_rows
from hgrpo.sandbox.studies.study import SandboxStudy


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
    rows = read_rows(study, runs)
    declared = [label for label in rows if label != study.other]
    arms = {label: ArmRows(rows[label], settings.get(label, {})) for label in declared}
    with atomic_folder(target) as folder:
        save_all(drawings(name, study.figures, arms), folder)
