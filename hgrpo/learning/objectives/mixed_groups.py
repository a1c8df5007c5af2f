"""How often a group of rollouts has anything to compare."""

from torch import Tensor


def mixed_rate(success: Tensor, size: int) -> Tensor:
    """1 - q^K - (1 - q)^K: the probability that K rollouts do not all succeed or all fail.

    Args:
        success: float, the probability q of a success.
        size: K.
    """
    return 1.0 - success**size - (1.0 - success) ** size
