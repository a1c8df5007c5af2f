"""Where the project stands, for tests that read its files."""

import os
from pathlib import Path

import pytest

# Before anything imports torch: on models this small a second thread costs more than it does, and
# many times more when another process wants the core.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def project() -> Path:
    """Folder of the project."""
    return Path(__file__).resolve().parent.parent
