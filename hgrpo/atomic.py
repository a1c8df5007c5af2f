"""Write files and folders atomically; write JSON files."""

import fcntl
import glob
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_folder(target: Path, sync_each: bool = True) -> Iterator[Path]:
    """Yield a scratch folder that replaces `target` when the block ends without an error.

    If the block raises, the scratch folder is removed and `target` is unchanged. Scratch folders
    that killed processes left behind are removed first, unless the file system does not support
    locks.

    Args:
        sync_each: if True, each file is synced separately, and a full disk raises an error. If
            False, the whole file system is synced once, which is faster for thousands of small
            files.
    """
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_over(target)
    scratch = target.with_name(f".{target.name}.tmp-{os.getpid()}")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    held = os.open(scratch, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield scratch
        for path in scratch.rglob("*") if sync_each else ():
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        if not sync_each:
            os.sync()
        if target.exists():
            shutil.rmtree(target)
        os.replace(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        os.close(held)


def _remove_left_over(target: Path) -> None:
    """Remove scratch folders that are not locked; keep all if locks are unsupported, as on NFS."""
    for folder in target.parent.glob(f".{glob.escape(target.name)}.tmp-*"):
        with suppress(OSError):
            held = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """Yield a scratch path that replaces `target` when the block ends without an error."""
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name}.tmp-{os.getpid()}")
    try:
        yield scratch
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


def write_json(path: Path, content: object) -> None:
    """Write a value as JSON, one entry per line."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
