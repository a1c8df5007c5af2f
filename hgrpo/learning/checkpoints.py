"""Saves and restores steps, so that killing and restarting a run does not change its outputs.

`write_state` and `read_state` are also used for the trainer state that a round passes to the next.
Runs with the same `resume_key` may resume from the same saved steps.
"""

import hashlib
import io
import json
import shutil
import struct
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from time import monotonic
from typing import Protocol

import torch

from hgrpo.atomic import atomic_folder
from hgrpo.base_model.digest import SUMMARY, base_digest
from hgrpo.errors import BROKEN_ZIP, UserError
from hgrpo.learning.scratch import rows_file, step_folder, step_folders

_STATE = "learner.pt"
# Exceptions that zipfile and torch raise for a damaged archive.
_DAMAGE = (*BROKEN_ZIP, OSError, ValueError, LookupError, TypeError, struct.error, UnpicklingError)


class Trained(Protocol):
    """An object that checkpoints save and restore; `STATE` lists the keys that `state` returns."""

    STATE: tuple[str, ...]

    def state(self) -> dict[str, object]:
        """All tensors and plain values that are changed by a step and used by later steps."""

    def load_state(self, state: Mapping[str, object]) -> None:
        """Restore a mapping returned by `state`."""


class Checkpoints:
    """Saves and restores the newest step of a run, in a folder from `job_scratch`.

    Args:
        folder: folder of the saved steps. It may also contain other files, such as trajectories.
        every_s: minimum time between two saved steps, in seconds. It does not affect the results,
            because a resumed run repeats the steps since the last saved step.
    """

    def __init__(self, folder: Path, every_s: float = 0.0):
        self.folder = Path(folder)
        self._every_s = every_s
        self._saved_at = monotonic()

    def save(self, trained: Trained, rows: Sequence[dict]) -> None:
        """Save the state of `trained` after the last step in `rows`, and remove older saved steps.

        Do nothing if less than `every_s` seconds have passed since the last save or the start.
        """
        if monotonic() - self._saved_at < self._every_s:
            return
        newest = step_folder(self.folder, len(rows) - 1)
        with atomic_folder(newest) as scratch:
            write_state(trained.state(), scratch / _STATE)
            rows_file(scratch).write_text(json.dumps(rows), encoding="utf-8")
        for folder in step_folders(self.folder):
            if folder != newest:
                shutil.rmtree(folder, ignore_errors=True)
        self._saved_at = monotonic()

    def restore(self, trained: Trained) -> list[dict]:
        """Load the newest saved step into `trained`; return the log rows up to that step.

        Raises:
            UserError: a file is missing or damaged. No file is removed.
        """
        if not self.finished:
            return []
        last = step_folder(self.folder, self.finished - 1)
        try:
            state = read_state(last / _STATE, trained.STATE)
            rows = json.loads(rows_file(last).read_bytes())
        except (UserError, OSError, ValueError) as error:
            known = isinstance(error, UserError)
            reason = error if known else f"{rows_file(last)}: the file is damaged ({error})"
            raise UserError(
                f"{reason}; restore the file from a copy, or remove {last} to resume from the "
                "previous saved step or, if there is none, from the start"
            ) from None
        trained.load_state(state)
        return rows

    @property
    def finished(self) -> int:
        """The number of steps that a resumed run skips."""
        return max((int(path.name[-5:]) + 1 for path in step_folders(self.folder)), default=0)


def write_state(state: Mapping[str, object], path: Path) -> None:
    """Write a mapping of tensors and plain values.

    Raises:
        OSError: the file cannot be written, for example because the disk is full.
    """
    # On a full disk, torch.save to a path raises RuntimeError. A plain write raises OSError.
    buffer = io.BytesIO()
    torch.save(state, buffer)
    path.write_bytes(buffer.getvalue())


def read_state(path: Path, keys: Collection[str]) -> dict:
    """Read a mapping written by `write_state`, and check that its keys are `keys`.

    Raises:
        UserError: the file is missing or damaged, or the mapping has other keys.
    """
    try:
        content = path.read_bytes()
        # torch writes a checksum for each part of its archive, but does not verify it when reading.
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if (part := archive.testzip()) is not None:
                raise ValueError(f"{part} does not match its checksum")
        state = torch.load(io.BytesIO(content), weights_only=True)
        if not isinstance(state, dict) or state.keys() != set(keys):
            raise ValueError(f"expected a mapping with the keys {', '.join(sorted(keys))}")
    except FileNotFoundError:
        raise UserError(f"{path}: the file is missing") from None
    except _DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: the file is damaged ({reason})") from None
    return state


def resume_key(settings: Mapping[str, object], base: Path, inputs: Iterable[Path]) -> str:
    """Hash (16 hex digits) of all inputs that a resumed run must share with the stopped run.

    Args:
        settings: configuration, code hash, seed etc., as JSON types.
        base: folder of the base model. If its summary contains a digest, the digest is used, which
            avoids reading gigabytes. Otherwise, all files in the folder are read.
        inputs: the other input files of the run.

    Raises:
        UserError: the base model's summary is damaged, or records a wrong size of the weights.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    if (base / SUMMARY).is_file():
        digest.update(base_digest(base).encode())
    else:
        inputs = [*files_in(base), *inputs]
    for path in inputs:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def files_in(folder: Path) -> list[Path]:
    """The files directly in `folder`, sorted by name."""
    return sorted(path for path in folder.iterdir() if path.is_file())
