"""The table of a policy's gradients: one row for each pass, bucket and component."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hgrpo.evaluation.gradients.bucket_statistics import (
    GroupProducts,
    bucket_statistics,
    cosine_to_all,
)
from hgrpo.evaluation.gradients.buckets import Bucket
from hgrpo.evaluation.truth.resampling import estimate, resamples

# What the rows show: the task with training's advantages, and with those before whitening and
# scaling; the KL; the entropy.
SHOWN = ("task", "task_unwhitened", "kl", "entropy")
PASSES = ("prefilter", "postfilter")


def shown(measured: GroupProducts, shift: float, scale: float) -> GroupProducts:
    """The components `SHOWN`, from those of `components.COMPONENTS`.

    Args:
        shift, scale: training uses the advantages (A - shift) / scale.
    """
    mixture = np.array(
        [[1 / scale, -shift / scale, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    )
    return measured.combined(mixture)


def bucket_rows(
    found: GroupProducts,
    cut: Sequence[Bucket],
    deviations: np.ndarray,
    coefficients: Sequence[float],
) -> list[dict[str, object]]:
    """Rows of all buckets that have two groups or more; intervals are bootstraps over groups.

    Args:
        found: the components `SHOWN` of G groups.
        cut: the buckets, the last of which holds all groups.
        deviations: of the groups' returns, [G].
        coefficients: of the components, with which training would weigh them.
    """
    rows = []
    for bucket in cut:
        if len(bucket.groups) < 2:
            continue
        part, spread = found.of(bucket.groups), deviations[bucket.groups]
        statistics = bucket_statistics(part, resamples(len(bucket.groups)))
        to_all = cosine_to_all(found, bucket.groups)
        for index, (component, coefficient) in enumerate(zip(SHOWN, coefficients, strict=True)):
            rows.append(
                {
                    "bucket": bucket.name,
                    "component": component,
                    "groups": len(bucket.groups),
                    "size": part.sizes.sum(),
                    "deviation": spread.mean(),
                    "deviation_min": spread.min(),
                    "deviation_max": spread.max(),
                    "coefficient": coefficient,
                    "loss": statistics.loss[0, index],
                    "norm": statistics.norm[0, index],
                    **_columns("corrected", statistics.corrected[:, index]),
                    **_columns("signal_to_noise", statistics.signal_to_noise[:, index]),
                    "cosine_to_all": to_all[index],
                    **{
                        f"cosine_to_{other}": statistics.cosine[0, index, place]
                        for place, other in enumerate(SHOWN)
                    },
                }
            )
    return rows


def _columns(name: str, values: np.ndarray) -> dict[str, float]:
    value, lower, upper = estimate(values)
    return {name: value, f"{name}_lower": lower, f"{name}_upper": upper}


def tabulated(passes: dict[str, list[dict[str, object]]]) -> pd.DataFrame:
    """All rows as one table; the column `pass` says where a row comes from."""
    return pd.DataFrame([{"pass": name, **row} for name, rows in passes.items() for row in rows])
