"""Lazy import of PyTorch, and a check of shapes.

The files of rules contain both settings and formulas. PyTorch is imported lazily, because planning
a study requires only the settings.
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
    """Raise a ValueError if the shapes differ, so that a loss is not silently broadcast.

    Formulas of losses and divergences call this function; formulas of weights do not.
    """
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) > 1:
        raise ValueError(f"expected tensors of equal shapes [N], got {sorted(shapes)}")
