"""The number format of training passes."""

import torch

from hgrpo.config.model import ModelConfig


def autocast_dtype(config: ModelConfig) -> torch.dtype | None:
    """The autocast type; None is plain float32."""
    return torch.bfloat16 if config.train_dtype == "bfloat16" else None
