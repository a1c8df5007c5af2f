"""An empty folder to work in, where a study and its store lie."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, which is empty; no code is hashed, which takes seconds a study."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hgrpo.store.plan.code_hash", lambda modules: "0" * 16)
    return tmp_path
