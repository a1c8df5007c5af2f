"""Lazily imported PyTorch, and a check of shapes.

Rules contain settings and formulas. The import is lazy because planning a study reads the settings
and should not wait for PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:

    class _AtFirstUse:
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module("torch"), name)
            setattr(self, name, value)
            return value

    torch, Tensor = _AtFirstUse(), Any


def check_shapes(*tensors: Tensor) -> None:
    """Raise ValueError if the shapes differ, so that a loss is not silently broadcast.

    Only formulas of losses and divergences check shapes; formulas of weights rely on them.
    """
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) > 1:
        raise ValueError(f"expected tensors of equal shapes [N], got {sorted(shapes)}")
