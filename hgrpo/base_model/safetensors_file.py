"""Weights as safetensors files: their headers, their checksums, and several joined into one.

Format (github.com/huggingface/safetensors): eight bytes, the length of the header; the header, JSON
of {name: {dtype, shape, data_offsets}} and `__metadata__`; then the data, where the offsets lead.
"""

import hashlib
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
# Nothing here knows whose file it is: of a model that was downloaded, or of results.
_MEND = (
    "put a whole copy in its place; a file of results can also be deleted and made anew: ask "
    "snakemake for that path, see README.md"
)
_METADATA, _CHECKSUM = "__metadata__", "hgrpo.sha256"


def read_header(path: Path) -> tuple[dict[str, dict], int]:
    """Name -> {dtype, shape, data_offsets} of a file's tensors, and where its data begin.

    The tensors themselves are not read.

    Raises:
        UserError: it is not a safetensors file, or not a whole one.
    """
    header, start = _read(path)
    header.pop(_METADATA, None)
    return header, start


def _read(path: Path) -> tuple[dict[str, dict], int]:
    """As `read_header`, with the metadata."""
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(size, _LONGEST_HEADER):
                raise ValueError("no header")
            header = json.loads(file.read(length))
        tensors = {name: entry for name, entry in header.items() if name != _METADATA}
        for name, entry in tensors.items():
            _check_entry(name, entry)
        end = max((entry["data_offsets"][1] for entry in tensors.values()), default=0)
        whole = size == 8 + length + end
    except (
        struct.error,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise UserError(
            f"{path}: not a safetensors file ({error}): damaged, cut off, or a pointer of git-lfs; "
            f"{_MEND}"
        ) from None
    if not whole:
        raise UserError(
            f"{path}: {size:,} bytes, but its header tells of {8 + length + end:,}: damaged, or "
            f"cut off; {_MEND}"
        )
    return header, 8 + length


def _check_entry(name: str, entry: dict) -> None:
    """ValueError unless a header's entry has all that a tensor's must have."""
    shape, offsets = entry.get("shape"), entry.get("data_offsets")
    if not isinstance(entry.get("dtype"), str):
        raise ValueError(f"tensor {name!r} has no dtype")
    if not _sizes(shape):
        raise ValueError(f"tensor {name!r} has no shape")
    if not _sizes(offsets) or len(offsets) != 2:
        raise ValueError(f"tensor {name!r} has no data_offsets")


def _sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)


def write_with_checksum(content: bytes, path: Path) -> None:
    """Write the safetensors file `content` to `path`, a checksum of it in the header's metadata.

    There it goes wherever the file goes, and whoever else reads the file passes it over. The same
    content gives the same bytes.
    """
    (length,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + length]), memoryview(content)[8 + length :]
    digest = _digest(header)
    digest.update(data)
    metadata = dict(sorted(header.pop(_METADATA, {}).items())) | {_CHECKSUM: digest.hexdigest()}
    with path.open("wb") as file:
        file.write(_encoded({_METADATA: metadata} | header))
        file.write(data)


def check_checksum(path: Path) -> None:
    """See whether a file is what `write_with_checksum` wrote.

    A file without a checksum passes, before its data are read: it is an adapter that somebody
    made with other tools, or a pretrained base, whose gigabytes are hashed once, when it is taken
    over.

    Raises:
        UserError: naming the file: it does not match its checksum, or is not a whole safetensors
            file.
    """
    header, start = _read(path)
    metadata = header.get(_METADATA)
    expected = metadata.get(_CHECKSUM) if isinstance(metadata, dict) else None
    if expected is None:
        return
    digest = _digest(header)
    with path.open("rb") as file:
        file.seek(start)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != expected:
        raise UserError(
            f"{path}: does not match its checksum: damaged, or changed after it was written; "
            f"{_MEND}"
        )


def _digest(header: dict[str, dict]) -> "hashlib._Hash":
    """SHA-256 that has read what a header says of its tensors, in the order of their names."""
    tensors = {name: entry for name, entry in header.items() if name != _METADATA}
    return hashlib.sha256(json.dumps(tensors, sort_keys=True, separators=(",", ":")).encode())


def _encoded(header: dict[str, dict]) -> bytes:
    """The beginning of a file, up to where its data begin."""
    text = json.dumps(header, separators=(",", ":")).encode()
    # The format wants data to begin at a multiple of eight.
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


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
    joined: dict[str, dict] = {_METADATA: {"format": "pt"}}
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
    with target.open("wb") as out:
        out.write(_encoded(joined))
        for path, start in zip(parts, starts, strict=True):
            with path.open("rb") as file:
                file.seek(start)
                shutil.copyfileobj(file, out, _CHUNK)
