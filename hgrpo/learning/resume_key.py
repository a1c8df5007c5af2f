"""What a run that resumes must have in common with the one that stopped, as one key."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from hgrpo.base_model.digest import SUMMARY, base_digest


def resume_key(settings: Mapping[str, object], base: Path, inputs: Iterable[Path]) -> str:
    """A key that changes with anything that would make a resumed run differ from a fresh one.

    Args:
        settings: the configuration, the code's hash, the seed and so on, in JSON's types.
        base: folder of the base model. Its summary holds a digest, which spares reading gigabytes;
            in a model folder without a summary every file is read.
        inputs: the other files that the run reads.

    Raises:
        UserError: the base's summary is damaged or of other weights.
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
    """The files of a folder, without those of its subfolders, sorted by name."""
    return sorted(path for path in folder.iterdir() if path.is_file())
