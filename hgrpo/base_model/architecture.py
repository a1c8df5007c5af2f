"""The config of a model or an adapter. Code that a config asks for is never run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import AutoConfig

from hgrpo.errors import UserError, one_line

if TYPE_CHECKING:
    from transformers import PretrainedConfig

# Keys that make a library run code: transformers a model's own classes, PEFT a module by name.
_CODE = ("auto_map", "auto_mapping", "custom_pipelines", "megatron_config")


def config_without_code(path: Path, name: str) -> dict:
    """The mapping in the config of a model or an adapter; `name` is what errors call the file.

    Raises:
        UserError: the config is no mapping, asks for code of its own, or belongs to an adapter that
            is not LoRA, which may name other folders to load.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: corrupted ({error})") from None
    if not isinstance(config, dict):
        raise UserError(f"{name}: a mapping was expected")
    for key in _CODE:
        if config.get(key) is not None:
            raise UserError(
                f"{name}: {key}: the model brings code of its own, which is never run here"
            )
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        raise UserError(f"{name}: peft_type: {kind!r}; only LORA is loaded")
    return config


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
