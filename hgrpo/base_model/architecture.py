"""Reads configs of models and adapters; custom code that a config refers to is never run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from hgrpo.errors import UserError, one_line

if TYPE_CHECKING:
    from transformers import PretrainedConfig

# With these config keys, transformers runs code of the model, or PEFT imports a named module.
_CODE = ("auto_map", "auto_mapping", "custom_pipelines", "megatron_config")
# Config keys with these suffixes set dropout rates. Layerdrop is dropout of whole layers.
_DROPOUTS = ("dropout", "_pdrop", "layerdrop")
# Config keys that do not affect inference, provided that every layer uses full causal attention.
_UNREAD = {
    *("architectures", "attention_bias", "attention_dropout", "bos_token_id", "dtype"),
    *("eos_token_id", "initializer_range", "intermediate_size", "max_window_layers", "mlp_bias"),
    *("pad_token_id", "pretraining_tp", "sliding_window", "transformers_version", "use_cache"),
    "vocab_size",
}


class PlainConfig(BaseModel):
    """The config of a plain Qwen2 or Llama model, which can be read without transformers.

    The keys without a default must be in config.json. Names and values are those of the
    transformers config.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    model_type: Literal["qwen2", "llama"]
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    hidden_act: str
    rms_norm_eps: float
    max_position_embeddings: int
    tie_word_embeddings: bool
    rope_parameters: dict[Literal["rope_theta", "rope_type"], float | Literal["default"]]
    head_dim: int | None = None
    layer_types: list[Literal["full_attention"]] | None = None
    use_sliding_window: Literal[False] = False


def config_without_code(path: Path, name: str) -> dict:
    """Read the config of a model or an adapter; `name` is the file's name in error messages.

    Raises:
        UserError: the file is not a JSON mapping, the config refers to custom code, or the adapter
            is not a LoRA adapter. Adapters of other types could refer to further folders.
    """
    try:
        config = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: the file is damaged ({error})") from None
    if not isinstance(config, dict):
        raise UserError(f"{name}: expected a mapping")
    for key in _CODE:
        if config.get(key) is not None:
            raise UserError(f"{name}: {key}: models with custom code are not supported")
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        raise UserError(f"{name}: peft_type: {kind!r}; only LORA is supported")
    return config


def architecture(folder: Path) -> "PretrainedConfig":
    """Load the transformers config in `folder`.

    Raises:
        UserError: transformers cannot load config.json. The message names the file.
    """
    # Imported here because the import takes a second and `PlainConfig` does not require it.
    from transformers import AutoConfig

    try:
        # By default, transformers prompts on the terminal before running custom code.
        return AutoConfig.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # a config class may raise anything
        raise UserError(
            f"{folder / 'config.json'}: the file is not a valid model config ({one_line(error)})"
        ) from None


def capped_architecture(folder: Path, max_length: int | None) -> "PretrainedConfig":
    """The config for loading a model, without dropout and with at most `max_length` positions."""
    config = architecture(folder)
    # Gradient checkpointing requires training mode, in which dropout would be active.
    for key, value in config.to_dict().items():
        if key.endswith(_DROPOUTS) and isinstance(value, int | float):
            setattr(config, key, 0.0)
    if max_length is not None:
        config.max_position_embeddings = min(config.max_position_embeddings, max_length)
    return config


def played_architecture(folder: Path, max_length: int | None) -> "PlainConfig | PretrainedConfig":
    """The config for inference: a `PlainConfig` if possible, otherwise `capped_architecture`."""
    path = folder / "config.json"
    config = config_without_code(path, str(path))
    try:
        plain = PlainConfig.model_validate({k: v for k, v in config.items() if k not in _UNREAD})
    except ValidationError:
        return capped_architecture(folder, max_length)
    longest = min(plain.max_position_embeddings, max_length or plain.max_position_embeddings)
    return plain.model_copy(update={"max_position_embeddings": longest})
