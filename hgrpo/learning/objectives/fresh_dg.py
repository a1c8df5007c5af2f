"""A discount for the age of a rollout. It is the original sandbox's own."""

import torch
from torch import Tensor


def freshness(age: Tensor, decay: float) -> Tensor:
    """exp(-decay age), in the shape of `age`, which counts training steps since sampling."""
    return torch.exp(-decay * age.float())
