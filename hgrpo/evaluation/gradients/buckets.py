"""Buckets of groups by the deviation of their returns.

RAGEN compares gradients of groups whose returns differ much with those of groups whose returns
differ little (https://github.com/mll-lab-nu/RAGEN). There, the last quantile bucket takes the whole
remainder of the division; here, sizes differ by at most one.
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
    """Some of the groups.

    Attributes:
        name: `bucket_1` holds the smallest deviations; `all` holds every group.
        groups: indices of the groups, in the order of their deviations.
    """

    name: str
    groups: np.ndarray


def buckets(deviations: Sequence[float], mode: BucketMode, number: int) -> list[Bucket]:
    """The buckets of G groups, and after them one of all groups.

    Args:
        deviations: the deviation of each group's returns, [G].
        mode: `quantile` for `number` buckets of equal size, `fixed` for the ranges of `FIXED`,
            without those that hold no group.
        number: of quantile buckets.

    Raises:
        ValueError: there are fewer groups than buckets, or a deviation is negative or not finite.
    """
    values = np.asarray(deviations, dtype=np.float64)
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError("deviations must be finite and at least 0")
    # A stable order, so that equal deviations keep the order in which the groups were played.
    order = np.argsort(values, kind="stable")
    if mode == "quantile":
        if number > len(values):
            raise ValueError(f"{number} buckets for {len(values)} groups")
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
