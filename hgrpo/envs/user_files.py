"""Digests of the user's own files, so that a study notices when they change."""

import hashlib

from hgrpo.config.user_path import files_below, user_path
from hgrpo.envs.environment import EnvSettings
from hgrpo.envs.kinds import load


def user_files_digest(env: EnvSettings, stage: str) -> str | None:
    """Hash (16 hex digits) of the names and sizes of the user's files that a stage reads.

    The hash ignores contents, because every plan computes it and a folder may hold gigabytes. It
    also ignores paths marked `made` (see `UserFile`): missing files are added there.

    Args:
        env: the environment's settings.
        stage: "assets" or "expert".

    Returns:
        None if the stage reads no files of the user.

    Raises:
        UserError: a variable in a path is not set.
        OSError: a path does not exist, or a file's size cannot be read.
    """
    files = [file for file in load(env.name).user_files(env) if file.stage == stage]
    roots = [user_path(file.path, file.key) for file in files if not file.made]
    if not roots:
        return None
    digest = hashlib.sha256()
    for root in roots:
        for path, name in files_below(root):
            digest.update(f"{name}\0{path.stat().st_size}\n".encode())
    return digest.hexdigest()[:16]
