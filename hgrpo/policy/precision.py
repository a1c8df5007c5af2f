"""Chooses the device of a model, and the dtypes of its weights and of training passes."""

import torch

from hgrpo.errors import UserError
from hgrpo.policy.settings import ModelConfig


def base_dtype(config: ModelConfig) -> torch.dtype:
    """The dtype of the base's weights."""
    return getattr(torch, config.base_dtype)


def autocast_dtype(config: ModelConfig, device: torch.device) -> torch.dtype | None:
    """The autocast dtype of training passes on a device; None means plain float32.

    With a bfloat16 base, `auto` selects bfloat16, because the base computes in bfloat16 anyway.
    """
    name = config.train_dtype
    if name == "auto":
        fits = config.base_dtype == "bfloat16" or has_bfloat16(device)
        name = "bfloat16" if fits else "float32"
    return torch.bfloat16 if name == "bfloat16" else None


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device has native bfloat16 matrix instructions.

    Without them, torch emulates bfloat16. On a CPU with only AVX2, this is 30 to 60 times slower
    than float32.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return any(torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16"))


def dtype_name(dtype: torch.dtype | None) -> str:
    """The name of an autocast dtype, as used in the setting `train_dtype`; "float32" for None."""
    return str(dtype or torch.float32).removeprefix("torch.")


def cast(device: torch.device, dtype: torch.dtype | None) -> torch.autocast:
    """The autocast context of a pass on `device`; autocast is disabled if `dtype` is None."""
    return torch.autocast(device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None)


def chosen_device(config: ModelConfig) -> torch.device:
    """The configured device; `auto` selects a GPU if torch detects one.

    Raises:
        UserError: a GPU is configured, but torch detects none.
    """
    there = torch.cuda.is_available()
    if config.device == "cuda" and not there:
        raise UserError(f"model {config.name}: `device: cuda`, but torch detects no GPU")
    return torch.device("cuda" if there and config.device != "cpu" else "cpu")
