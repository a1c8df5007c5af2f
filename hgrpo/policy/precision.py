"""The number format of training passes, and where they run."""

import torch

from hgrpo.errors import UserError
from hgrpo.policy.settings import ModelConfig

_BFLOAT16 = ("avx512_bf16", "amx_bf16")


def autocast_dtype(config: ModelConfig, device: torch.device) -> torch.dtype | None:
    """The autocast type of training passes on a device; None is plain float32.

    `auto` beside a base that is kept in bfloat16 is that: its products are in it anyhow.
    """
    wanted = config.train_dtype
    if wanted == "auto":
        fits = config.base_dtype == "bfloat16" or has_bfloat16(device)
        wanted = "bfloat16" if fits else "float32"
    return torch.bfloat16 if wanted == "bfloat16" else None


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for products in bfloat16.

    Without them torch can do it all the same, on a CPU with AVX2 alone 30 to 60 times slower than
    in float32.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return any(torch.cpu.get_capabilities().get(name) for name in _BFLOAT16)


def dtype_name(dtype: torch.dtype | None) -> str:
    """What `train_dtype` calls an autocast type, or the lack of one."""
    return str(dtype or torch.float32).removeprefix("torch.")


def cast(device: torch.device, dtype: torch.dtype | None) -> torch.autocast:
    """The block in which a pass runs on `device`, in `dtype` where it matters little."""
    return torch.autocast(device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None)


def chosen_device(config: ModelConfig) -> torch.device:
    """The device of a model's config; `auto` is a GPU where there is one.

    Raises:
        UserError: a GPU is asked for by name, and there is none.
    """
    there = torch.cuda.is_available()
    if config.device == "cuda" and not there:
        raise UserError(f"model {config.name}: device: cuda: this machine shows no GPU to torch")
    return torch.device("cuda" if there and config.device != "cpu" else "cpu")
