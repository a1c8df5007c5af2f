"""The scratch folder of an unfinished run: one process holds it and keeps finished steps there.

This module does not import torch, so that the monitor can read the steps of a run.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hgrpo.errors import UserError


@contextmanager
def locked_scratch(root: Path, key: str) -> Iterator[Path]:
    """The folder `root/key`, held by this process alone; removed when the block succeeds.

    Folders of other keys under `root` belong to superseded runs and are removed. The key comes from
    `resume_key`.

    Raises:
        UserError: another process holds the folder.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{root}: another process is running this job") from None
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        for other in root.iterdir():
            if other.is_dir() and other.name != key:
                shutil.rmtree(other, ignore_errors=True)
        folder = root / key
        folder.mkdir(exist_ok=True)
        yield folder
        shutil.rmtree(folder, ignore_errors=True)


def step_folder(folder: Path, step: int) -> Path:
    """Where the state after a step lies; steps count from 0."""
    return folder / f"step_{step:05d}"


def step_folders(folder: Path) -> list[Path]:
    """The steps that are kept, oldest first."""
    return sorted(folder.glob("step_*"))


def rows_file(step: Path) -> Path:
    """The file in a step's folder with the log rows of all steps so far."""
    return step / "rows.json"
