"""Code that a model's folder asks for: none of it is ever run."""

import json
from pathlib import Path

from hgrpo.errors import UserError

# What libraries import or run for it: transformers a model's own classes, PEFT a module by name.
_CODE = ("auto_map", "auto_mapping", "custom_pipelines", "megatron_config")


def plain_config(path: Path, name: str) -> dict:
    """The mapping in the config of a model or an adapter; `name` is what errors call the file.

    Raises:
        UserError: naming file and key: it is not one, asks for code of its own, or is the config
            of an adapter that is not LoRA, which may name other folders to load.
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
