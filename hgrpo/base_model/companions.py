"""The companions of a model's weights: the files of its folder that stages read besides them."""

from pathlib import Path

# Config, tokenizer and chat template. No stage reads any other file of a model's folder.
COMPANIONS = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
)


def companions(folder: Path) -> list[Path]:
    """The companions that `folder` holds, always in the same order."""
    return [path for name in COMPANIONS if (path := folder / name).is_file()]
