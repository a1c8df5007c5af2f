"""PyTorch, loaded at its first use, and a check of shapes.

Rules hold settings and formulas. Planning a study reads the settings and must not wait for PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:

    class _AtFirstUse:
        """Stands for the module `torch`."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module("torch"), name)
            setattr(self, name, value)
            return value

    torch, Tensor = _AtFirstUse(), Any


def check_shapes(*tensors: Tensor) -> None:
    """Raise ValueError if the shapes differ, before a loss is silently broadcast.

    Formulas check that end in a loss or a divergence; formulas of weights rely on those.
    """
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) > 1:
        raise ValueError(f"tensors of shapes {sorted(shapes)}; equal shapes [N] were expected")
