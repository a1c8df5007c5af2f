"""The number format of training passes, and where they run."""

import torch

from hgrpo.config.model import ModelConfig
from hgrpo.errors import UserError


def autocast_dtype(config: ModelConfig) -> torch.dtype | None:
    """The autocast type; None is plain float32."""
    return torch.bfloat16 if config.train_dtype == "bfloat16" else None


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
