"""Configs that ask for code of their own are refused; such code is never run."""

import json
from pathlib import Path

from hgrpo.errors import UserError

# Keys that make a library run code: transformers a model's own classes, PEFT a module by name.
_CODE = ("auto_map", "auto_mapping", "custom_pipelines", "megatron_config")


def config_without_code(path: Path, name: str) -> dict:
    """The mapping in the config of a model or an adapter; `name` is what errors call the file.

    Raises:
        UserError: the config is no mapping, asks for code of its own, or belongs to an adapter that
            is not LoRA, which may name other folders to load. The message names the file and the
            key.
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
