"""Where the project stands, for tests that read its files."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def project() -> Path:
    """Folder of the project."""
    return Path(__file__).resolve().parent.parent
