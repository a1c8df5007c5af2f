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
    """Download a file, or check it if `path` exists; return its size (bytes) and sha256 (hex).

    Args:
        key: the setting that names the file; error messages begin with this key.

    Raises:
        UserError: `hgrpo.games.fetch.fetch` raises one, or the packages that it needs are missing.
    """
    place = "" if path.exists() else f" (a copy from elsewhere can be put at {path})"
    try:
        # Import here, because `fetch` needs packages that only an optional extra installs.
        from hgrpo.games.fetch import fetch

        return fetch(source, path)
    except ImportError as error:
        raise UserError(
            f"{key}: fetching needs more packages (pip install requests tenacity): {error}"
        ) from None
    except UserError as error:
        raise UserError(f"{key}: {error}{place}") from None
