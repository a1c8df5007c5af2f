"""Weights as safetensors files: what they hold by their headers, and several joined into one.

Format (github.com/huggingface/safetensors): eight bytes, the length of the header; the header, JSON
of {name: {dtype, shape, data_offsets}} and `__metadata__`; then the data, where the offsets lead.
"""

import json
import math
import shutil
import struct
from pathlib import Path

from hgrpo.errors import UserError

WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
_LONGEST_HEADER = 100_000_000
_CHUNK = 1 << 24


def read_header(path: Path) -> tuple[dict[str, dict], int]:
    """Name -> {dtype, shape, data_offsets} of a file's tensors, and where its data begin.

    The tensors themselves are not read.

    Raises:
        UserError: it is not a safetensors file, or not a whole one.
    """
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(size, _LONGEST_HEADER):
                raise ValueError("no header")
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: not a safetensors file ({error}); a pointer of git-lfs, or an unfinished "
            "download?"
        ) from None
    if size != 8 + length + end:
        raise UserError(f"{path}: {size:,} bytes, but its header tells of {8 + length + end:,}")
    return header, 8 + length


def parameters(header: dict[str, dict]) -> int:
    """Number of values in the tensors of a header."""
    return sum(math.prod(entry["shape"]) for entry in header.values())


def shards(folder: Path) -> list[Path]:
    """The files that the index in `folder` names, in their order.

    Raises:
        UserError: the index is damaged, or names a file that is not there.
    """
    index = folder / INDEX
    try:
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        wrong = [name for name in names if Path(name).name != name]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{index}: not an index of weights ({error})") from None
    for name in wrong or [name for name in names if not (folder / name).is_file()]:
        raise UserError(f"{index}: {name}: no such file beside it")
    return [folder / name for name in names]


def join(parts: list[Path], target: Path) -> None:
    """Write the tensors of several files as one, byte by byte; none of them is held in memory.

    Raises:
        UserError: a file is damaged, or two hold a tensor of the same name.
    """
    joined: dict[str, dict] = {"__metadata__": {"format": "pt"}}
    starts, length = [], 0
    for path in parts:
        header, start = read_header(path)
        for name, entry in header.items():
            if name in joined:
                raise UserError(f"{path}: tensor {name!r} is in another file too")
            offsets = [length + offset for offset in entry["data_offsets"]]
            joined[name] = entry | {"data_offsets": offsets}
        starts.append(start)
        length += path.stat().st_size - start
    text = json.dumps(joined, separators=(",", ":")).encode()
    # The format wants data to begin at a multiple of eight.
    text += b" " * (-len(text) % 8)
    with target.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for path, start in zip(parts, starts, strict=True):
            with path.open("rb") as file:
                file.seek(start)
                shutil.copyfileobj(file, out, _CHUNK)
