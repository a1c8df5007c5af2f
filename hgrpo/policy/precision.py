"""The number types of weights and training passes, and the device of a model."""

import torch

from hgrpo.errors import UserError
from hgrpo.policy.settings import ModelConfig


def base_dtype(config: ModelConfig) -> torch.dtype:
    """The number type of the base's weights."""
    return getattr(torch, config.base_dtype)


def autocast_dtype(config: ModelConfig, device: torch.device) -> torch.dtype | None:
    """The autocast type of training passes on a device; None means plain float32.

    With a bfloat16 base, `auto` means bfloat16, because the base computes in bfloat16 anyway.
    """
    name = config.train_dtype
    if name == "auto":
        fits = config.base_dtype == "bfloat16" or has_bfloat16(device)
        name = "bfloat16" if fits else "float32"
    return torch.bfloat16 if name == "bfloat16" else None


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for products in bfloat16.

    Torch emulates missing instructions. On a CPU that has only AVX2, the emulation is 30 to 60
    times slower than float32.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return any(torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16"))


def dtype_name(dtype: torch.dtype | None) -> str:
    """The name of an autocast type as in the setting `train_dtype`; None is "float32"."""
    return str(dtype or torch.float32).removeprefix("torch.")


def cast(device: torch.device, dtype: torch.dtype | None) -> torch.autocast:
    """The autocast context of a pass on `device`; `dtype` None switches autocast off."""
    return torch.autocast(device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None)


def chosen_device(config: ModelConfig) -> torch.device:
    """The device that `config.device` names; `auto` is a GPU if torch sees one.

    Raises:
        UserError: the config names a GPU, and torch sees none.
    """
    there = torch.cuda.is_available()
    if config.device == "cuda" and not there:
        raise UserError(f"model {config.name}: device: cuda: this machine shows no GPU to torch")
    return torch.device("cuda" if there and config.device != "cpu" else "cpu")
