"""The scratch folder of a job, which stores the finished steps of an unfinished run.

This module does not import torch, so that the monitor can read the steps of a run.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hgrpo.errors import UserError

# A round passes these two files to the next round. The second one is in the policy's folder and
# contains the state of the optimiser and other training state.
CRITIC, TRAINER_STATE = "critic.safetensors", "trainer_state.pt"


def step_folder(folder: Path, step: int) -> Path:
    """The folder for the state after `step`, which counts from 0."""
    return folder / f"step_{step:05d}"


def step_folders(folder: Path) -> list[Path]:
    """The folders of the saved steps, oldest first."""
    return sorted(folder.glob("step_*"))


def rows_file(step: Path) -> Path:
    """The file in a step's folder that contains the log rows of this and all earlier steps."""
    return step / "rows.json"


def scratch_root(option: Path | None, out: Path) -> Path:
    """The folder of `--scratch`, or by default a folder next to the results."""
    return option or out.with_name(f"{out.name}-scratch")


@contextmanager
def job_scratch(option: Path | None, out: Path, key: str) -> Iterator[Path]:
    """Lock the scratch folder and yield the subfolder for this job's steps.

    Subfolders with other keys, which belong to superseded runs, are removed first. If the `with`
    block succeeds, this job's subfolder is removed. The scratch folder is then also removed, unless
    it was set with `--scratch`.

    Args:
        option: the folder of `--scratch`, if any.
        out: the folder of the results.
        key: from `resume_key`.

    Raises:
        UserError: another process has locked the scratch folder.
    """
    root = scratch_root(option, out)
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w", encoding="utf-8") as lock:
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
        if option is None:
            # The lock is still held, so that no other process uses the folder.
            (root / "lock").unlink(missing_ok=True)
            with suppress(OSError):
                root.rmdir()
