"""Folders that tests read: the project's own, and the data that may lie beside it."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared"
