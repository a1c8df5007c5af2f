"""Reads the headers of safetensors files, writes and verifies checksums, and merges shards.

The safetensors library validates the format and copies tensors. For checksums, this module reads
and writes headers itself, because the library provides neither a fixed order of the metadata nor
the offset of the data. A file consists of eight bytes with the length of the header, the header,
and the data. The header is a JSON object with the key `__metadata__` and an entry {name: {dtype,
shape, data_offsets}} for each tensor. Format: github.com/huggingface/safetensors.
"""

import hashlib
import json
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
# Advice at the end of error messages, for files of downloaded models and of the pipeline's jobs.
_MEND = (
    "replace it with an intact copy; a result can also be deleted and rebuilt by running snakemake "
    "with its path as target, see docs/how_to.md"
)
_METADATA, _CHECKSUM = "__metadata__", "hgrpo.sha256"


def read_header(path: Path) -> dict[str, dict]:
    """Read {name: {dtype, shape, data_offsets}} of the tensors in a file, without their data.

    Raises:
        UserError: the file is not a complete safetensors file.
    """
    header, _ = _read(path)
    header.pop(_METADATA, None)
    return header


def _read(path: Path) -> tuple[dict[str, dict], int]:
    try:
        with safe_open(path, "np"):
            pass  # opening validates the header and the file length
    except SafetensorError as error:
        raise UserError(
            f"{path}: not a complete safetensors file ({error}); it may be damaged, truncated, or "
            f"a git-lfs pointer; {_MEND}"
        ) from None
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length)), 8 + length


def file_digest(path: Path) -> str:
    """SHA-256 (64 hex digits) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_with_checksum(content: bytes, path: Path) -> None:
    """Write the safetensors file `content` to `path`, with a checksum in the header's metadata.

    Other software ignores the checksum. Equal content always gives identical files.
    """
    (length,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8 : 8 + length]), memoryview(content)[8 + length :]
    digest = _digest(header)
    digest.update(data)
    metadata = dict(sorted(header.pop(_METADATA, {}).items())) | {_CHECKSUM: digest.hexdigest()}
    text = json.dumps({_METADATA: metadata} | header, separators=(",", ":")).encode()
    # The format requires the data to be aligned to eight bytes.
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.write(data)


def write_tensors(
    tensors: Mapping[str, "Tensor"], path: Path, about: Mapping[str, str] | None = None
) -> None:
    """Write tensors as a safetensors file with a checksum; `about` is added to the metadata."""
    from safetensors.torch import save

    whole = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    write_with_checksum(save(whole, metadata={"format": "pt", **(about or {})}), path)


def write_model(model: "PreTrainedModel", folder: Path) -> None:
    """Write config.json and model.safetensors, with a checksum; tied tensors are written once."""
    model.config.save_pretrained(str(folder))
    tied = model.all_tied_weights_keys
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in tied}
    write_tensors(tensors, folder / WEIGHTS)


def check_checksum(path: Path) -> None:
    """Verify the checksum of a safetensors file.

    Files without a checksum are accepted, and their data are not read. These files are pretrained
    bases, which the base stage has already hashed, and adapters from other software.

    Raises:
        UserError: the file is not a complete safetensors file, or does not match its checksum.
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
            f"{path}: the file does not match its checksum, so it is damaged or was changed after "
            f"writing; {_MEND}"
        )


def _digest(header: dict[str, dict]) -> "hashlib._Hash":
    """Return a SHA-256 object updated with the entries of the header, without the metadata."""
    tensors = {name: entry for name, entry in header.items() if name != _METADATA}
    return hashlib.sha256(json.dumps(tensors, sort_keys=True, separators=(",", ":")).encode())


def shards(folder: Path) -> list[Path]:
    """Paths of the shards that are listed in the index in `folder`, sorted by name.

    Raises:
        UserError: the index is damaged, or a listed file is missing.
    """
    index = folder / INDEX
    try:
        names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
        wrong = [name for name in names if Path(name).name != name]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{index}: the file is not a valid index of weights ({error})") from None
    for name in wrong or [name for name in names if not (folder / name).is_file()]:
        raise UserError(f"{index}: {name}: no such file in the same folder")
    return [folder / name for name in names]


def join(parts: list[Path], target: Path) -> None:
    """Merge the tensors of several files into one file.

    The safetensors library memory-maps the files, so tensors are not copied in memory.

    Raises:
        UserError: a file is damaged, or two files contain a tensor of the same name.
    """
    from safetensors.torch import save_file

    joined = {}
    for path in parts:
        names = read_header(path).keys()
        if twice := sorted(names & joined.keys()):
            raise UserError(f"{path}: tensor {twice[0]!r} is also in another file")
        with safe_open(path, "pt") as file:
            joined |= {name: file.get_tensor(name) for name in names}
    try:
        save_file(joined, target, metadata={"format": "pt"})
    except SafetensorError as error:
        # The library reports a full disk as a SafetensorError.
        raise OSError(f"{target}: {error}") from None
