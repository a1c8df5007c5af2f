"""What makes a model beside its weights: config, tokenizer and chat template."""

import hashlib
from pathlib import Path

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
