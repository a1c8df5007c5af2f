"""Checks that a saved policy matches its base and its study, before weights are loaded.

The config has no checksum, and an edited config would change the model. It is therefore compared
with the base's config and the study's settings.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from hgrpo.base_model.architecture import capped_architecture, config_without_code
from hgrpo.base_model.safetensors_file import WEIGHTS, check_checksum, file_digest
from hgrpo.errors import UserError
from hgrpo.policy.settings import LoraConfig, ModelConfig

LORA_CONFIG, LORA_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
# These config keys do not affect the model's architecture.
_BOOKKEEPING = {"_name_or_path", "architectures", "dtype", "transformers_version"}
# These LoRA settings may differ from PEFT's defaults. `r`, `lora_alpha` and `target_modules` are
# compared with the study's settings. The others record the adapter's origin and task.
_FREE = {
    *("auto_mapping", "base_model_name_or_path", "inference_mode", "peft_version", "revision"),
    *("task_type", "r", "lora_alpha", "target_modules"),
}


def check_policy(
    config: ModelConfig, base: Path, adapter: Path, ignored: Collection[str] = ()
) -> None:
    """Check that a saved policy can be loaded with this base and these settings.

    Args:
        ignored: keys of a LoRA adapter's config that are not checked.

    Raises:
        UserError: see `check_adapter`, and `check_lora` (LoRA) or `check_architecture` (full
            tuning).
    """
    lora = config.adapt == "lora"
    check_adapter(adapter, lora)
    if lora:
        check_lora(adapter, config.lora, ignored)
    else:
        check_architecture(adapter, base, config)


def check_adapter(folder: Path, lora: bool) -> None:
    """Check that a folder holds a complete policy.

    If the weights have a checksum, they must match it (see `check_checksum`).

    Args:
        lora: whether the policy must be a LoRA adapter; otherwise it must be a fully tuned model.

    Raises:
        UserError: a file is missing or damaged, the folder holds the other kind of policy, or the
            weights do not match their checksum; see also `config_without_code`.
    """
    config_name, weights_name = policy_files(lora)
    for name in (config_name, weights_name):
        if not (folder / name).is_file():
            adapter = "lora" if lora else "full"
            raise UserError(f"{folder / name}: missing, but required with `adapt: {adapter}`")
    config_without_code(folder / config_name, str(folder / config_name))
    check_checksum(folder / weights_name)


def policy_files(lora: bool) -> tuple[str, str]:
    """File names of a saved policy's config and weights."""
    return (LORA_CONFIG, LORA_WEIGHTS) if lora else ("config.json", WEIGHTS)


def weights_digest(adapter: Path) -> str:
    """Hash (16 hex digits) of the weights file in a saved policy's folder.

    Raises:
        UserError: the folder holds no weights.
    """
    for name in (LORA_WEIGHTS, WEIGHTS):
        if (adapter / name).is_file():
            return file_digest(adapter / name)[:16]
    raise UserError(f"{adapter}: expected {LORA_WEIGHTS} or {WEIGHTS} in this folder")


def check_architecture(adapter: Path, base: Path, settings: ModelConfig) -> None:
    """Check that a fully tuned policy has its base's architecture.

    Raises:
        UserError: the configs differ outside `_BOOKKEEPING`, or one cannot be read.
    """
    # If the files are identical, return before importing transformers, which takes a second.
    if _config(adapter) == _config(base):
        return
    config, expected = (
        _described(capped_architecture(folder, settings.max_length).to_dict())
        for folder in (adapter, base)
    )
    for key in expected | config:
        if config.get(key) != expected.get(key):
            raise UserError(
                f"{adapter / 'config.json'}: {key}: {config.get(key)!r}, but "
                f"{base / 'config.json'} has {expected.get(key)!r}"
            )


def _config(folder: Path) -> dict:
    path = folder / "config.json"
    return _described(config_without_code(path, str(path)))


def _described(config: Any) -> Any:
    """Remove the keys of `_BOOKKEEPING` from a config and its nested sections."""
    if not isinstance(config, dict):
        return config
    return {key: _described(each) for key, each in config.items() if key not in _BOOKKEEPING}


def check_lora(adapter: Path, settings: LoraConfig, ignored: Collection[str] = ()) -> None:
    """Check that a LoRA adapter has the study's rank, alpha and targets, and is plain LoRA.

    All other PEFT settings outside `_FREE` and `ignored` must be PEFT's defaults, because variants
    of LoRA reinterpret rank and alpha, train additional weights, or modify the base.

    Raises:
        UserError: a setting differs, or the config cannot be read.
    """
    path = adapter / LORA_CONFIG
    config = config_without_code(path, str(path))
    targets = config.get("target_modules")
    for key, value, name, setting in (
        ("r", config.get("r"), "rank", settings.rank),
        ("lora_alpha", config.get("lora_alpha"), "alpha", settings.alpha),
        ("target_modules", _ordered(targets), "targets", _ordered(settings.targets)),
    ):
        if value != setting:
            raise UserError(
                f"{path}: {key}: {value!r}, but the study's model has `lora.{name}`: {setting!r}"
            )
    from peft import LoraConfig as PeftConfig

    plain = PeftConfig().to_dict()
    for key in sorted(config.keys() & plain.keys() - _FREE - set(ignored)):
        if config[key] != plain[key]:
            raise UserError(
                f"{path}: {key}: {config[key]!r}; only plain LoRA without this setting is supported"
            )


def _ordered(targets: object) -> object:
    return sorted({str(each) for each in targets}) if isinstance(targets, list) else targets
