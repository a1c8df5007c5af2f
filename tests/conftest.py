"""Where the project stands, for tests that read its files, and how tests run."""

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings
from places import PROJECT

# Before anything imports torch: on models this small a second thread costs more than it does, and
# many times more when another process wants the core.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests start hundreds of processes. Each would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# `make test EXTRAS=alfworld` would hand its variables on to each make that a test starts.
for name in ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "EXTRAS", "TESTS"):
    os.environ.pop(name, None)

# A shell's background jobs ignore Ctrl-C, and the processes that tests start would, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes depends on what else the machine does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked with an extra of which any package is missing or too old."""
    from hgrpo.workflow.packages import packages

    for mark in item.iter_markers("extra"):
        lacking = [f"{each.name} {each.text}" for each in packages(*mark.args) if each.lacking]
        if lacking:
            pytest.skip(f"the extra {mark.args[0]!r} is not installed: {lacking[0]}")


@pytest.fixture(scope="session")
def project() -> Path:
    """Folder of the project."""
    return PROJECT


def pytest_collection_finish() -> None:
    """Exempt imported modules and collected tests, millions of objects, from garbage collection."""
    gc.collect()
    gc.freeze()
