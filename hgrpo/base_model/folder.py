"""The folder of a base model: the files beside its weights, and how stages hand it on."""

from pathlib import Path

from hgrpo.archive import unpacked

ARCHIVE = "companions.tar"
# Config, tokenizer and chat template. No stage reads any other file beside the weights.
COMPANIONS = (
    *("config.json", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "chat_template.jinja"),
)


def companions(folder: Path) -> list[Path]:
    """The files of `COMPANIONS` that `folder` holds, always in the same order."""
    return [path for name in COMPANIONS if (path := folder / name).is_file()]


def open_base(folder: Path) -> Path:
    """A folder with weights, companions and summary side by side, as models are loaded from.

    `folder` is what the base stage wrote, with the companions in an archive; or any model folder in
    Hugging Face format, which is returned as it is.

    Raises:
        UserError: the archive is damaged, or the weights or the summary beside it are missing.
    """
    if not (folder / ARCHIVE).is_file():
        return folder
    return unpacked(folder / ARCHIVE, beside=("model.safetensors", "summary.json"))
