"""Reads the config of a model or an adapter, without running the code that it may name."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from hgrpo.errors import UserError, one_line

if TYPE_CHECKING:
    from transformers import PretrainedConfig

# Config keys that make transformers run a model's own classes, or PEFT import a module by name.
_CODE = ("auto_map", "auto_mapping", "custom_pipelines", "megatron_config")
# Config keys for dropout end like this. Layerdrop leaves out whole layers.
_DROPOUTS = ("dropout", "_pdrop", "layerdrop")
# Config keys that change nothing in play, where every layer attends to all earlier tokens.
_UNREAD = {
    *("architectures", "attention_bias", "attention_dropout", "bos_token_id", "dtype"),
    *("eos_token_id", "initializer_range", "intermediate_size", "max_window_layers", "mlp_bias"),
    *("pad_token_id", "pretraining_tp", "sliding_window", "transformers_version", "use_cache"),
    "vocab_size",
}


class PlainConfig(BaseModel):
    """The config of a plain Qwen2 or Llama model, read from a file that spells all of it out.

    The attributes have the names and values that they have in transformers' config.
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
    """Read the config of a model or an adapter; error messages call the file `name`.

    Raises:
        UserError: the file holds no JSON or no mapping, the config asks to run code of its own, or
            the adapter is not LoRA. (Configs of other adapters may name more folders to load.)
    """
    try:
        config = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: damaged ({error})") from None
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
    """Load the transformers config in `folder`.

    Raises:
        UserError: transformers cannot load config.json. The message names the file.
    """
    # Importing transformers takes a second, and a `PlainConfig` does not need it.
    from transformers import AutoConfig

    try:
        # By default, transformers asks on the terminal whether to run a model's own code.
        return AutoConfig.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # a config class may raise anything
        raise UserError(
            f"{folder / 'config.json'}: not a model's config ({one_line(error)})"
        ) from None


def capped_architecture(folder: Path, max_length: int | None) -> "PretrainedConfig":
    """The config to load a model with: every dropout 0, and at most `max_length` positions.

    Raises:
        UserError: as `architecture`.
    """
    config = architecture(folder)
    # With gradient checkpointing the model is in training mode, where dropout draws at random.
    for key, value in config.to_dict().items():
        if key.endswith(_DROPOUTS) and isinstance(value, int | float):
            setattr(config, key, 0.0)
    if max_length is not None:
        config.max_position_embeddings = min(config.max_position_embeddings, max_length)
    return config


def played_architecture(folder: Path, max_length: int | None) -> "PlainConfig | PretrainedConfig":
    """The config to play saved weights with: `capped_architecture`, or a `PlainConfig` like it.

    Raises:
        UserError: as `config_without_code` and `architecture`.
    """
    path = folder / "config.json"
    config = config_without_code(path, str(path))
    try:
        plain = PlainConfig.model_validate({k: v for k, v in config.items() if k not in _UNREAD})
    except ValidationError:
        return capped_architecture(folder, max_length)
    longest = min(plain.max_position_embeddings, max_length or plain.max_position_embeddings)
    return plain.model_copy(update={"max_position_embeddings": longest})
