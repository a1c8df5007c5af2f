"""Describes an official data file by its address, size and checksum, and downloads it."""

from dataclasses import dataclass
from pathlib import Path

from hgrpo.errors import UserError


@dataclass(frozen=True, slots=True)
class Source:
    """A file's address; `size` (bytes) and `sha256` (hex) are None if unknown."""

    url: str
    size: int | None = None
    sha256: str | None = None


def fetch_for(source: Source, path: Path, key: str) -> dict[str, str | int]:
    """Fetch a file, or check it if it is there; return its size (bytes) and sha256 (hex).

    Args:
        key: the setting that names the file; error messages begin with this key.

    Raises:
        UserError: as `hgrpo.envs.fetch.fetch`, or the packages for downloads are not installed.
    """
    place = "" if path.exists() else f" (a copy from elsewhere can be put at {path})"
    try:
        # Imported here: its packages come with an extra of the install.
        from hgrpo.envs.fetch import fetch

        return fetch(source, path)
    except ImportError as error:
        raise UserError(
            f"{key}: fetching needs more packages (pip install requests tenacity): {error}"
        ) from None
    except UserError as error:
        raise UserError(f"{key}: {error}{place}") from None
