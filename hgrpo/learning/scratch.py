"""The scratch folder of an unfinished run, which one process holds, and the steps it keeps there.

This module does not import torch, so that the monitor can read the steps of a run.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hgrpo.errors import UserError

_ROWS = "rows.json"
_WEIGHTS, _SUMMARY = "model.safetensors", "summary.json"


@contextmanager
def locked_scratch(root: Path, key: str) -> Iterator[Path]:
    """The folder `root/key`, held by this process alone; removed when the block succeeds.

    Folders of other keys under `root` belong to superseded runs and are removed.

    Args:
        root: the run's scratch folder.
        key: from `resume_key`.

    Raises:
        UserError: another process holds it.
    """
    root = Path(root)
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


def resume_key(settings: Mapping[str, object], inputs: Sequence[Path]) -> str:
    """A key that changes with anything that would make a resumed run differ from a fresh one.

    Args:
        settings: the configuration, the code's hash, the seed and so on, in JSON's types.
        inputs: files that the run reads.

    Raises:
        UserError: a summary beside weights is damaged.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path in inputs:
        if not _has_recorded_hash(path):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _has_recorded_hash(path: Path) -> bool:
    """Whether the summary beside weights holds their hash, which spares reading gigabytes."""
    summary = path.with_name(_SUMMARY)
    if path.name != _WEIGHTS or not summary.is_file():
        return False
    try:
        known = json.loads(summary.read_text())
        return "sha256" in known and known["bytes"] == path.stat().st_size
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise UserError(f"{summary}: corrupted ({error})") from None


def step_folder(folder: Path, step: int) -> Path:
    """Where the state after a step lies; steps count from 0."""
    return folder / f"step_{step:05d}"


def step_folders(folder: Path) -> list[Path]:
    """The steps that are kept, oldest first."""
    return sorted(folder.glob("step_*"))


def finished_steps(folder: Path) -> int:
    """Number of steps up to the newest one that is kept."""
    return max((int(path.name[-5:]) + 1 for path in step_folders(folder)), default=0)


def rows_file(step: Path) -> Path:
    """The log rows of all steps up to that of a step's folder."""
    return step / _ROWS
