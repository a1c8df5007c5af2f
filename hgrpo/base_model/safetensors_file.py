"""Weights as safetensors files: reading headers, keeping checksums, joining several files into one.

The safetensors library checks the format and copies tensors. A checksum also needs metadata in a
fixed order and the place where data begin. The library offers neither, so this module does. The
format (github.com/huggingface/safetensors) is: eight bytes with the length of the header; the
header, JSON of {name: {dtype, shape, data_offsets}} and `__metadata__`; the data.
"""

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from hgrpo.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
# The file may be part of a downloaded model or of results; nothing here knows which.
_MEND = (
    "put a whole copy in its place; a file of results can also be deleted and made again: ask "
    "snakemake for that path, see README.md"
)
_METADATA, _CHECKSUM = "__metadata__", "hgrpo.sha256"


def read_header(path: Path) -> dict[str, dict]:
    """Name -> {dtype, shape, data_offsets} of a file's tensors, without reading the tensors.

    Raises:
        UserError: the file is no complete safetensors file.
    """
    header, _ = _read(path)
    header.pop(_METADATA, None)
    return header


def _read(path: Path) -> tuple[dict[str, dict], int]:
    """The header with its metadata, and the position in the file where data begin."""
    try:
        with safe_open(path, "np"):
            pass  # opening checks the header, and that the file ends where the header says
    except SafetensorError as error:
        raise UserError(
            f"{path}: not a whole safetensors file ({error}): damaged, cut off, or a pointer of "
            f"git-lfs; {_MEND}"
        ) from None
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length)), 8 + length


def parameters(header: dict[str, dict]) -> int:
    """Number of values in the tensors of a header."""
    return sum(math.prod(entry["shape"]) for entry in header.values())


def write_with_checksum(content: bytes, path: Path) -> None:
    """Write the safetensors file `content` to `path`, with a checksum in the header's metadata.

    The checksum stays with the file wherever it is copied, and other readers ignore it. Equal
    content gives equal bytes.
    """
    (length,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + length]), memoryview(content)[8 + length :]
    digest = _digest(header)
    digest.update(data)
    metadata = dict(sorted(header.pop(_METADATA, {}).items())) | {_CHECKSUM: digest.hexdigest()}
    text = json.dumps({_METADATA: metadata} | header, separators=(",", ":")).encode()
    # The format wants data to begin at a multiple of eight.
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.write(data)


def write_tensors(tensors: Mapping[str, "Tensor"], path: Path) -> None:
    """Write tensors as a safetensors file with a checksum."""
    from safetensors.torch import save

    whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_with_checksum(save(whole, metadata={"format": "pt"}), path)


def write_model(model: "PreTrainedModel", folder: Path) -> None:
    """Write config.json and model.safetensors, with a checksum; tied tensors are written once."""
    model.config.save_pretrained(str(folder))
    tied = model.all_tied_weights_keys
    own = {name: tensor for name, tensor in model.state_dict().items() if name not in tied}
    write_tensors(own, folder / WEIGHTS)


def check_checksum(path: Path) -> None:
    """Check that a file is as `write_with_checksum` wrote it.

    A file without a checksum passes, and its data are not read. It is an adapter made with other
    tools, or a pretrained base, whose gigabytes are hashed once, when it is adopted.

    Raises:
        UserError: the file does not match its checksum, or is no complete safetensors file.
    """
    header, start = _read(path)
    expected = (header.get(_METADATA) or {}).get(_CHECKSUM)
    if expected is None:
        return
    digest = _digest(header)
    with path.open("rb") as file:
        file.seek(start)
        hashlib.file_digest(file, lambda: digest)
    if digest.hexdigest() != expected:
        raise UserError(
            f"{path}: does not match its checksum: damaged, or changed after it was written; "
            f"{_MEND}"
        )


def _digest(header: dict[str, dict]) -> "hashlib._Hash":
    """A SHA-256 begun with the header's tensors in the order of their names, metadata left out."""
    tensors = {name: entry for name, entry in header.items() if name != _METADATA}
    return hashlib.sha256(json.dumps(tensors, sort_keys=True, separators=(",", ":")).encode())


def shards(folder: Path) -> list[Path]:
    """The files that the index in `folder` names, sorted by name.

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
    """Write the tensors of several files as one file.

    The library maps the files into memory and copies from there, so no tensor is held.

    Raises:
        UserError: a file is damaged, or two files hold a tensor of the same name.
    """
    from safetensors.torch import save_file

    joined = {}
    for path in parts:
        names = read_header(path).keys()
        if twice := sorted(names & joined.keys()):
            raise UserError(f"{path}: tensor {twice[0]!r} is in another file too")
        with safe_open(path, "pt") as file:
            joined |= {name: file.get_tensor(name) for name in names}
    try:
        save_file(joined, target, metadata={"format": "pt"})
    except SafetensorError as error:
        # The library reports a full disk as an error of its own.
        raise OSError(f"{target}: {error}") from None
