"""Divides groups into buckets by the standard deviation of their returns.

RAGEN compares the gradients of groups with high and low return variance
(https://github.com/mll-lab-nu/RAGEN). If groups cannot be divided equally among quantile buckets,
RAGEN adds the remaining groups to the last bucket. Here, bucket sizes differ by at most one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

BucketMode = Literal["quantile", "fixed"]
ALL = "all"
# Lower ends of the fixed buckets, in units of the return.
FIXED = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class Bucket:
    """A subset of the groups.

    Attributes:
        name: `bucket_1` has the smallest deviations; `all` contains every group.
        groups: indices of the groups, in order of their deviations.
    """

    name: str
    groups: np.ndarray


def buckets(deviations: Sequence[float], mode: BucketMode, number: int) -> list[Bucket]:
    """Divide G groups into buckets, and append a bucket with all groups.

    Args:
        deviations: standard deviation of each group's returns, [G].
        mode: `quantile` for `number` buckets of equal size, `fixed` for the nonempty ranges of
            `FIXED`.
        number: number of quantile buckets.

    Raises:
        ValueError: there are fewer groups than buckets, or a deviation is negative or not finite.
    """
    values = np.asarray(deviations, dtype=np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError("deviations must be finite and at least 0")
    # The sort is stable, so that groups with equal deviations keep the order of play.
    order = np.argsort(values, kind="stable")
    if mode == "quantile":
        if number > len(values):
            raise ValueError(f"{len(values)} groups are too few for {number} buckets")
        parts = [
            Bucket(f"bucket_{index}", part)
            for index, part in enumerate(np.array_split(order, number), start=1)
        ]
    else:
        place = np.searchsorted(FIXED, values[order], side="right")
        parts = [
            Bucket(f"bucket_{index}", order[place == index])
            for index in range(1, len(FIXED) + 1)
            if (place == index).any()
        ]
    return [*parts, Bucket(ALL, order)]
