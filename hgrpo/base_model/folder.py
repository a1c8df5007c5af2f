"""The folder of a base model: the files beside the weights, and how stages read the folder."""

from pathlib import Path

from hgrpo.archive import unpacked

ARCHIVE = "companions.tar.gz"
# Config, tokenizer and chat template: all that this project keeps of a Hugging Face
# model, apart from its weights.
COMPANIONS = (
    *("config.json", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "chat_template.jinja"),
)


def companions(folder: Path) -> list[Path]:
    """The files of `COMPANIONS` that `folder` holds, always in the same order."""
    return [path for name in COMPANIONS if (path := folder / name).is_file()]


def open_base(folder: Path) -> Path:
    """Return a folder with weights and companions side by side, as loading a model requires.

    If the base stage wrote `folder`, the companions are in an archive, which is unpacked. Any other
    model folder in Hugging Face format is returned unchanged.

    Raises:
        UserError: the archive is damaged, or the weights or the summary beside it are missing.
    """
    if not (folder / ARCHIVE).is_file():
        return folder
    return unpacked(folder / ARCHIVE, beside=("model.safetensors", "summary.json"))
