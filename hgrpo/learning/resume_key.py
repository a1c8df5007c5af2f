"""The key that decides whether a run may resume from the checkpoints of a stopped run."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from hgrpo.base_model.digest import SUMMARY, base_digest


def resume_key(settings: Mapping[str, object], base: Path, inputs: Iterable[Path]) -> str:
    """Hash (16 hex digits) of everything that a resumed run must share with the stopped run.

    Args:
        settings: the configuration, the code's hash, the seed and so on, in JSON's types.
        base: folder of the base model. If it has a summary, the digest in the summary is used,
            which saves reading gigabytes. Otherwise every file in the folder is read.
        inputs: the other files that the run reads.

    Raises:
        UserError: the base's summary is damaged, or records another size of the weights.
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
