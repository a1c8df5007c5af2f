"""An official data file: its address, and how to recognise it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A file's address; `size` (bytes) and `sha256` (hex) are None if unknown."""

    url: str
    size: int | None = None
    sha256: str | None = None
