"""Functions that resolve paths in configs and read users' text files."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hgrpo.errors import UserError


def user_path(text: str, key: str) -> Path:
    """Expand environment variables and `~` in a path.

    Args:
        key: the key of the path in the config, for error messages.

    Raises:
        UserError: an environment variable is not set.
    """
    path = Path(os.path.expandvars(text)).expanduser()
    if "$" in str(path):
        raise UserError(f"{key}: {text}: the environment variable is not set")
    return path


def user_text(path: Path) -> str:
    """Read a user's text file and strip a byte order mark.

    Raises:
        UserError: the file cannot be read, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: the text is not UTF-8; save the file in UTF-8") from None


def missing(text: str, key: str, holds: Sequence[str]) -> Path | None:
    """Return the first missing path: `text` or a file in it. Return None if nothing is missing.

    Args:
        holds: patterns (`Path.glob`) of the files that the folder `text` must contain.

    Raises:
        UserError: an environment variable is not set.
    """
    place = user_path(text, key)
    if not place.exists():
        return place
    return next((place / pattern for pattern in holds if not any(place.glob(pattern))), None)


def files_below(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield (path, name) of all files in `root` and its subfolders, or of `root` if it is a file.

    Symbolic links to folders are followed, but each folder is visited only once.
    """
    if not root.is_dir():
        yield root, root.name
        return
    files, entered = [], set()
    for folder, folders, names in os.walk(root, followlinks=True):
        first = (place := os.path.realpath(folder)) not in entered
        entered.add(place)
        folders[:] = sorted(folders) if first else []
        files += [Path(folder, name) for name in names if first]
    for path in sorted(files):
        yield path, path.relative_to(root).as_posix()
