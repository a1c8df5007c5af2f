"""Downloads missing data files, and describes every data file for the manifest."""

import hashlib
from pathlib import Path

from hgrpo.envs.source import fetch_for
from hgrpo.envs.webshop.official_sources import OFFICIAL
from hgrpo.errors import UserError


def provide(path: Path, download: bool) -> dict[str, str | int]:
    """Name, size (bytes) and sha256 (hex) of a data file; a missing file may be downloaded.

    The whole file is hashed every time, since a stored hash could be out of date. Hashing takes
    about a second per gigabyte, much less than reading the JSON. For a folder, the
    size and hash are those of its files, concatenated in the order of their paths.

    Args:
        download: download a missing file that has an official name, and check an existing one.

    Raises:
        UserError: the file is missing and cannot be downloaded, or is not the official file.
    """
    if download and path.name in OFFICIAL:
        return {"name": path.name} | fetch_for(OFFICIAL[path.name], path, "products.download")
    if not path.exists():
        raise UserError(
            f"{path}: no such file; `products.download: true` fetches files with official names"
        )
    return _described(path)


def _described(path: Path) -> dict[str, str | int]:
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            hashlib.file_digest(handle, lambda: digest)
    size = sum(file.stat().st_size for file in files)
    return {"name": path.name, "size": size, "sha256": digest.hexdigest()}
