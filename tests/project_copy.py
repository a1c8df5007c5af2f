"""Copies of what a study needs of the project, in which tests run it."""

import shutil
from pathlib import Path

_PARTS = ("Snakefile", "rules", "profiles", "configs", "hgrpo")


def copy_project(project: Path, root: Path) -> None:
    """Copy the workflow and its package into `root`, a folder that is there."""
    skip = shutil.ignore_patterns("__pycache__")
    for part in _PARTS:
        if (project / part).is_dir():
            shutil.copytree(project / part, root / part, symlinks=True, ignore=skip)
        else:
            shutil.copy2(project / part, root)


def paths_below(root: Path) -> list[Path]:
    """Everything in a folder but what Python keeps of the modules that it has compiled."""
    return sorted(path for path in root.rglob("*") if "__pycache__" not in path.parts)
