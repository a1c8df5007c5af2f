"""The folder of a base model, as the stages hand it on and as a model is loaded from it."""

from pathlib import Path

from hgrpo.archive import unpacked

ARCHIVE = "companions.tar"


def open_base(folder: Path) -> Path:
    """A folder with weights, companions and summary side by side, as models are loaded from.

    Args:
        folder: what the base stage wrote, with the companions in an archive; or any model folder in
            Hugging Face format, which is returned as it is.

    Raises:
        UserError: the archive is damaged, or the weights or the summary beside it are missing.
    """
    folder = Path(folder)
    if not (folder / ARCHIVE).is_file():
        return folder
    return unpacked(folder / ARCHIVE, beside=("model.safetensors", "summary.json"))
