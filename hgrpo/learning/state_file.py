"""A file of training state: tensors and plain values under fixed keys, checked when read."""

import io
import struct
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from pickle import UnpicklingError

import torch

from hgrpo.errors import UserError
from hgrpo.zip_errors import BROKEN_ZIP

# What zipfile and torch raise when an archive is damaged.
_DAMAGE = (*BROKEN_ZIP, OSError, ValueError, LookupError, TypeError, struct.error, UnpicklingError)


def write_state(state: Mapping[str, object], path: Path) -> None:
    """Write a mapping of tensors and plain values.

    Raises:
        OSError: the disk is full.
    """
    # torch.save on a path reports a full disk as a RuntimeError; a plain write does not.
    buffer = io.BytesIO()
    torch.save(state, buffer)
    path.write_bytes(buffer.getvalue())


def read_state(path: Path, keys: Collection[str]) -> dict:
    """Read what `write_state` wrote: a mapping with these keys, of tensors and plain values.

    Raises:
        UserError: the file is missing, holds something else, or has a damaged byte that matters.
    """
    try:
        content = path.read_bytes()
        # torch writes a checksum for each part of its archive but does not check it on reading.
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if (part := archive.testzip()) is not None:
                raise ValueError(f"{part} does not match its checksum")
        state = torch.load(io.BytesIO(content), weights_only=True)
        if not isinstance(state, dict) or state.keys() != set(keys):
            raise ValueError(f"no mapping of {', '.join(sorted(keys))}")
    except FileNotFoundError:
        raise UserError(f"{path}: missing") from None
    except _DAMAGE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path}: corrupted ({reason})") from None
    return state
