"""Lists the companion files in the folder of a base model, and unpacks them for loading."""

from pathlib import Path

from hgrpo.archive import unpacked

ARCHIVE = "companions.tar.gz"
# Files that are kept in addition to the weights: config, tokenizer and chat template.
COMPANIONS = (
    *("config.json", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "chat_template.jinja"),
)


def companions(folder: Path) -> list[Path]:
    """The files of `COMPANIONS` in `folder`, in a fixed order."""
    return [path for name in COMPANIONS if (path := folder / name).is_file()]


def open_base(folder: Path) -> Path:
    """Return a folder that holds both weights and companion files, as required for loading.

    In a folder written by the base stage, the companion files are in an archive, which is unpacked.
    Any other model folder in Hugging Face format is returned unchanged.

    Raises:
        UserError: the archive is damaged, or the weights or the summary are missing.
    """
    if not (folder / ARCHIVE).is_file():
        return folder
    return unpacked(folder / ARCHIVE, beside=("model.safetensors", "summary.json"))
