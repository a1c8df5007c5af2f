"""The check that tensors which belong together have one shape."""

from torch import Tensor


def check_shapes(*tensors: Tensor) -> None:
    """Raise ValueError if the shapes differ; a term would silently be broadcast otherwise."""
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) > 1:
        raise ValueError(f"tensors of shapes {sorted(shapes)}; equal shapes [N] were expected")
