"""What makes a model beside its weights: config, tokenizer and chat template."""

import hashlib
from pathlib import Path

from hgrpo.config.user_path import user_path
from hgrpo.errors import UserError

# Of a model's folder no stage reads anything but these and the weights.
BESIDE = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
)


def beside_digest(folder: Path) -> str:
    """Hash (16 hex digits) of those of the files `BESIDE` that are in `folder`."""
    digest = hashlib.sha256()
    for path in (folder / name for name in BESIDE):
        if path.is_file():
            digest.update(
                f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
            )
    return digest.hexdigest()[:16]


def source_digest(path: str, copy: Path) -> str:
    """`beside_digest` of a user's model; of the copy that was taken over, where the model is gone.

    Args:
        path: of the model's folder, as its config has it.
        copy: folder of the base.
    """
    try:
        folder = user_path(path, "path")
        # A folder may outlive its files, on a disk that is cleaned by age or not mounted.
        if (folder / "config.json").is_file() and any(folder.glob("*.safetensors")):
            return beside_digest(folder)
    except (UserError, OSError, RuntimeError):
        pass  # no variable, no permission, no such user: results of others can be read all the same
    return beside_digest(copy)
