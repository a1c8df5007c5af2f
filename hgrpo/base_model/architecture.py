"""The transformers config of a model's folder."""

from pathlib import Path
from typing import TYPE_CHECKING

from transformers import AutoConfig

from hgrpo.errors import UserError, one_line

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def architecture(folder: Path) -> "PretrainedConfig":
    """The transformers config in `folder`.

    Raises:
        UserError: transformers cannot make a config of config.json. The message names the file.
    """
    try:
        # By default, transformers asks on the terminal whether to run a model's own code.
        return AutoConfig.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # each model's config raises what it likes
        raise UserError(
            f"{folder / 'config.json'}: not a model's config ({one_line(error)})"
        ) from None


def capped_architecture(folder: Path, max_length: int | None) -> "PretrainedConfig":
    """The config that models are loaded with: no dropout, conversations of at most `max_length`.

    Raises:
        UserError: as `architecture`.
    """
    config = architecture(folder)
    config.attention_dropout = 0.0
    if max_length is not None:
        config.max_position_embeddings = min(config.max_position_embeddings, max_length)
    return config
