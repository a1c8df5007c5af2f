"""Data files that a config names: fetched where they are missing, and which ones they were."""

import hashlib
from pathlib import Path

from hgrpo.envs.webshop.official_sources import OFFICIAL
from hgrpo.errors import UserError


def provide(path: Path, download: bool) -> dict[str, str | int]:
    """See to it that a data file is there, and say which one it is.

    The whole file is hashed every time: at about a gigabyte a second that is little beside reading
    its JSON, and a note of an earlier hash could be out of date.

    Args:
        path: a file, or a folder of trajectories.
        download: a file with the name of an official one is fetched if it is missing, and
            otherwise checked to be that one.

    Returns:
        name, size (bytes) and sha256 (hex); of a folder those of all its files, one after another
        in the order of their paths.

    Raises:
        UserError: it is missing and cannot be fetched, or is not the official file of its name.
    """
    if download:
        # Here, since they come with an extra of the install.
        try:
            from hgrpo.envs.fetch import fetch
        except ImportError as error:
            raise UserError(
                "products.download: fetching needs requests and tenacity "
                f"(pip install -e '.[webshop]'): {error}"
            ) from None
        if path.name in OFFICIAL:
            missing = not path.exists()
            try:
                receipt = fetch(OFFICIAL[path.name], path)
            except UserError as error:
                place = f" (a copy from elsewhere can be put at {path})" if missing else ""
                raise UserError(f"products.download: {error}{place}") from None
            return {"name": path.name, "size": receipt.size, "sha256": receipt.sha256}
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
