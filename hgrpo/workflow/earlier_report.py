"""Keep a copy of a study's report before a smaller run replaces it."""

import datetime
import shutil
from collections.abc import Mapping
from pathlib import Path

from hgrpo.atomic import atomic_folder
from hgrpo.config.read import read_yaml
from hgrpo.errors import UserError

FOLDER = "earlier_reports"
_ONE = {"seeds": "seed", "methods": "method"}


def keep_report(root: Path, study: Mapping) -> str:
    """Copy the report if it holds rounds, seeds or arms that the next report will lack.

    A run that only adds rounds, seeds or arms needs no copy: its report holds the old ones too.

    Args:
        root: the study's results folder.
        study: the resolved study that is about to run.

    Returns:
        One line that says what was kept and where; "" if nothing was.
    """
    page = root / "report" / "report.html"
    try:
        before = read_yaml(root / "config.yaml")
        lost = _lost(before, study)
    except (UserError, OSError, LookupError, TypeError):
        return ""
    if not lost or not page.is_file():
        return ""
    written = datetime.datetime.fromtimestamp(page.stat().st_mtime, datetime.UTC)
    kept = root / FOLDER / written.strftime("%Y-%m-%d_%H%M%S")
    if not kept.exists():
        with atomic_folder(kept) as folder:
            shutil.copytree(page.parent, folder, dirs_exist_ok=True)
            shutil.copy2(root / "config.yaml", folder / "config.yaml")
    return f"this run replaces {page} by a report without {lost}; the earlier report is in {kept}"


def _lost(before: Mapping, after: Mapping) -> str:
    """What the earlier study has and the next one lacks, as text; "" if nothing."""
    words = []
    if before["rounds"] > after["rounds"]:
        first, last = after["rounds"] + 1, before["rounds"]
        words.append(f"rounds {first} to {last}" if first < last else f"round {last}")
    for key in _ONE:
        gone = [str(each) for each in before[key] if each not in after[key]]
        if gone:
            words.append(f"{_ONE[key] if len(gone) == 1 else key} {', '.join(gone)}")
    return " and ".join(words)
