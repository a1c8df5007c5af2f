"""What a study reads that is neither in its configuration nor made by its own stages."""

from hgrpo.study.study import Study


def outside_files(study: Study) -> list[str]:
    """Keys that point at the user's files: the same settings may give other results elsewhere."""
    env = study.env
    named = {
        f"env {study.config.env}: a folder of games or products": env.source == "folder",
        f"env {study.config.env}: expert.recorded": getattr(env.expert, "recorded", None),
        f"model {study.config.model}: path": study.model.path,
    }
    return [key for key, value in named.items() if value]
