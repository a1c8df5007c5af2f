"""What a task asks."""

from typing import NamedTuple

from torch import Tensor


class Questions(NamedTuple):
    """Inputs [S, N, ...] as the policy reads them, and the right actions int64 [S, N, T]."""

    inputs: Tensor
    labels: Tensor
