"""Shares of a number of things, as if there were no rounding."""

import numpy as np

# A share counts as reached in spite of rounding, such as that of ten times 0.1.
ROUNDING = 1e-12


def share_of(share: float, many: int) -> int:
    """A share of so many, rounded down."""
    return int(np.floor(share * many * (1 + ROUNDING)))
