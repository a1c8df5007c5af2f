"""Digests of the user's own files, which are part of the keys of the stages that read them."""

import contextlib
import json
from pathlib import Path

from hgrpo.config.user_path import user_path
from hgrpo.envs.user_files import user_files_digest
from hgrpo.errors import UserError
from hgrpo.study.study import Study


def user_digest(study: Study, stage: str, results: Path) -> str | None:
    """Digest of the files of the user that a stage reads; None if it reads no such files.

    If the files are gone, the digest is the one that the stage recorded. So a user may copy
    finished results without the games or the model behind them, and no job runs again.

    Args:
        results: results/<study>, for what was recorded.
    """
    if stage in ("assets", "expert"):
        name = {"assets": "assets/manifest.json", "expert": "expert/summary.json"}[stage]
        try:
            return user_files_digest(study.env, stage)
        except (UserError, OSError):
            return _recorded(results / name, "user_files")
    if stage == "base" and study.model.path is not None:
        # Imported here: planning other studies does not need the packages that read weights.
        from hgrpo.base_model.digest import source_digest

        return source_digest(study.model.path, results / "base")
    if stage == "sft" and study.config.sft.adapter is not None:
        from hgrpo.policy.given_adapter import given_digest

        try:
            return given_digest(user_path(study.config.sft.adapter, "sft.adapter"))
        except (UserError, OSError):
            return _recorded(results / "sft/summary.json", "given")
    return None


def _recorded(path: Path, key: str) -> str | None:
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        return json.loads(path.read_bytes())[key]
    return None
