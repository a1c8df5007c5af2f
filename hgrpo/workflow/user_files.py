"""What a study reads that is neither in its configuration nor made by its own stages."""

from hgrpo.envs.kinds import load
from hgrpo.study.study import Study


def outside_files(study: Study) -> list[str]:
    """Keys that point at the user's files: the same settings may give other results elsewhere."""
    files = load(study.env.name).user_files(study.env)
    keys = [f"env {study.config.env}: {file.key}" for file in files]
    if study.model.path is not None:
        keys.append(f"model {study.config.model}: path")
    return keys
