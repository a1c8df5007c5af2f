"""Whether a policy's config says what base and study say: training must not go on as another model.

Configs have no checksum, and who edits one edits what all weights beside it mean.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from hgrpo.base_model.check_weights import architecture
from hgrpo.base_model.foreign_code import plain_config
from hgrpo.errors import UserError
from hgrpo.policy.settings import LoraConfig, ModelConfig

if TYPE_CHECKING:
    from transformers import PretrainedConfig

# Keys that say who wrote the file and in which type, not what the model is.
_BOOKKEEPING = {"_name_or_path", "architectures", "dtype", "transformers_version"}
# Of an adapter: who wrote it, what for, and what is compared with the study's own settings.
_FREE = {
    *("auto_mapping", "base_model_name_or_path", "inference_mode", "peft_version", "revision"),
    *("task_type", "r", "lora_alpha", "target_modules"),
}


def architecture_of(folder: Path, settings: ModelConfig) -> "PretrainedConfig":
    """The transformers config in `folder`, as models are loaded with it.

    Without dropout, and for conversations no longer than `settings` allow.

    Raises:
        UserError: naming the file: it is of no model that transformers knows.
    """
    config = architecture(folder)
    config.attention_dropout = 0.0
    if settings.max_length is not None:
        config.max_position_embeddings = min(config.max_position_embeddings, settings.max_length)
    return config


def check_architecture(adapter: Path, base: Path, settings: ModelConfig) -> None:
    """See whether a fully tuned policy is of its base's architecture.

    Raises:
        UserError: naming file and key: they differ, or a config cannot be read.
    """
    found, wanted = (
        _flat(architecture_of(folder, settings).to_dict()) for folder in (adapter, base)
    )
    for key in wanted | found:
        if found.get(key) != wanted.get(key):
            raise UserError(
                f"{adapter / 'config.json'}: {key}: {found.get(key)!r}, but "
                f"{base / 'config.json'} has {wanted.get(key)!r}"
            )


def _flat(config: dict, prefix: str = "") -> dict[str, object]:
    """Dotted names of a config's keys, bookkeeping left out -> their values."""
    flat: dict[str, object] = {}
    for key, value in config.items():
        if key in _BOOKKEEPING:
            continue
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def check_lora(adapter: Path, settings: LoraConfig) -> None:
    """See whether a LoRA adapter is of the study's rank, alpha and targets, and plain LoRA.

    All else that PEFT knows must be as it is by default: variants change what rank and alpha mean,
    what is trained beside, or the base itself.

    Raises:
        UserError: naming file and key: it is not, or the config cannot be read.
    """
    path = adapter / "adapter_config.json"
    found = plain_config(path, str(path))
    targets = found.get("target_modules")
    for key, value, name, wanted in (
        ("r", found.get("r"), "rank", settings.rank),
        ("lora_alpha", found.get("lora_alpha"), "alpha", settings.alpha),
        ("target_modules", _ordered(targets), "targets", _ordered(settings.targets)),
    ):
        if value != wanted:
            raise UserError(f"{path}: {key}: {value!r}, but lora.{name} of the model is {wanted!r}")
    # Importing peft takes seconds, and full tuning has no use for it.
    from peft import LoraConfig as PeftConfig

    plain = PeftConfig().to_dict()
    for key in found.keys() & plain.keys() - _FREE:
        if found[key] != plain[key]:
            raise UserError(f"{path}: {key}: {found[key]!r}; only plain LoRA is loaded, without it")


def _ordered(targets: object) -> object:
    """A list of names without order and repetition; anything else as it is."""
    return sorted({str(each) for each in targets}) if isinstance(targets, list) else targets
