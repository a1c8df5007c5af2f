"""The digest of a base model: one hash of its weights and companion files.

The base stage hashes the weights once and writes the digest to `summary.json`. Later stages read
the digest from there instead of hashing gigabytes again.
"""

import hashlib
import json
import math
from pathlib import Path

from hgrpo.atomic import write_json
from hgrpo.base_model.folder import companions
from hgrpo.base_model.safetensors_file import WEIGHTS, file_digest, read_header
from hgrpo.errors import UserError
from hgrpo.games.user_path import user_path

SUMMARY = "summary.json"


def companions_digest(folder: Path) -> str:
    """Hash (16 hex digits) of the names and contents of the companion files in `folder`."""
    digest = hashlib.sha256()
    for path in companions(folder):
        digest.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:16]


def write_summary(folder: Path, vocabulary: int, **more: object) -> dict:
    """Write the `summary.json` of the base in `folder`, and return it.

    `vocabulary` is the size of the tokenizer's vocabulary; `more` are additional entries.
    """
    weights = folder / WEIGHTS
    beside = companions_digest(folder)
    hashed = file_digest(weights)
    summary = {
        "vocabulary": vocabulary,
        "parameters": sum(math.prod(entry["shape"]) for entry in read_header(weights).values()),
        "bytes": weights.stat().st_size,
        "companions": beside,
        "digest": hashlib.sha256(f"{beside}\0{hashed}".encode()).hexdigest()[:16],
    } | more
    write_json(folder / SUMMARY, summary)
    return summary


def base_digest(folder: Path) -> str:
    """The digest (16 hex digits) recorded in the `summary.json` in `folder`.

    Raises:
        UserError: the summary is missing or damaged, or the weights do not have the recorded size.
    """
    summary = _read_summary(folder)
    size = (folder / WEIGHTS).stat().st_size
    if size != summary["bytes"]:
        raise UserError(
            f"{folder / WEIGHTS}: the file has {size:,} bytes, but according to {SUMMARY} in the "
            f"same folder it has {summary['bytes']:,}; delete both files and run again"
        )
    return summary["digest"]


def identity(folder: Path) -> dict[str, str]:
    """Return two hashes of a base: one of the whole base, and one of its companion files."""
    summary = folder / SUMMARY
    beside = _read_summary(folder)["companions"] if summary.is_file() else companions_digest(folder)
    return {"base": any_digest(folder), "tokenizer": beside}


def any_digest(folder: Path) -> str:
    """Return `base_digest` or, without a summary, a hash (16 hex digits) of the weights."""
    if (folder / SUMMARY).is_file():
        return base_digest(folder)
    return file_digest(folder / WEIGHTS)[:16]


def source_digest(path: str, base: Path) -> str:
    """Return `companions_digest` of the user's model in `path`.

    If that model is missing, the copy in `base` is hashed instead. A changed digest shows that the
    user modified the model after it was copied. The digest excludes the weights, because hashing
    them for every plan would take too long.

    Raises:
        UserError: the model is missing, and the summary in `base` is damaged.
    """
    try:
        folder = user_path(path, "path")
        # Check for files: the folder may be empty after a purge or if its disk is not mounted.
        if (folder / "config.json").is_file() and any(folder.glob("*.safetensors")):
            return companions_digest(folder)
    except (UserError, OSError, RuntimeError):
        pass  # `path` may belong to another machine or user; use `base`
    if companions(base) or not (base / SUMMARY).is_file():
        return companions_digest(base)
    return _read_summary(base)["companions"]  # the companion files are packed in an archive


def _read_summary(folder: Path) -> dict:
    path = folder / SUMMARY
    try:
        summary = json.loads(path.read_bytes())
        return {key: summary[key] for key in ("digest", "companions", "bytes")}
    except FileNotFoundError:
        raise UserError(f"{path}: the file is missing; run the base stage again") from None
    except (ValueError, RecursionError, TypeError, LookupError) as error:
        raise UserError(
            f"{path}: the file is damaged ({type(error).__name__}: {error}); delete it and run "
            "again"
        ) from None
