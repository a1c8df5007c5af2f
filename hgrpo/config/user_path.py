"""Paths that people write in configs."""

import os
from pathlib import Path

from hgrpo.errors import UserError


def user_path(text: str, key: str) -> Path:
    """A path with its environment variables and its `~` filled in.

    Args:
        key: the config's key, which the message names.

    Raises:
        UserError: an environment variable is not set.
    """
    path = Path(os.path.expandvars(text)).expanduser()
    if "$" in str(path):
        raise UserError(f"{key}: {text}: the environment variable is not set")
    return path
