"""An official data file: where it is to be had, and how to tell that it is the one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """Where a file is, and what it should be where that is known; `size` in bytes."""

    url: str
    size: int | None = None
    sha256: str | None = None
