"""Builds the table of a policy's gradients, with one row per pass, bucket and component."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from hgrpo.evaluation.gradients.bucket_statistics import (
    GroupProducts,
    bucket_statistics,
    cosine_to_all,
)
from hgrpo.evaluation.gradients.buckets import Bucket, buckets
from hgrpo.evaluation.gradients.settings import GradientsConfig
from hgrpo.evaluation.truth.resampling import estimate, resamples

# Components of the gradient. `task` uses whitened and scaled advantages, `task_unwhitened` uses raw
# advantages, and `regularisers` is the weighted sum of `kl` and `entropy`.
TASK, REGULARISERS = "task", "regularisers"
SHOWN = (TASK, "task_unwhitened", "kl", "entropy", REGULARISERS)
PASSES = ("prefilter", "postfilter")


def mix(
    measured: GroupProducts, shift: float, scale: float, kl: float, entropy: float
) -> GroupProducts:
    """Compute the components `SHOWN` from the measured components (`components.COMPONENTS`).

    Args:
        shift, scale: advantages A are transformed to (A - shift) / scale.
        kl, entropy: coefficients of the KL and of the entropy.
    """
    mixture = [
        [1 / scale, -shift / scale, 0, 0],
        [1, 0, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [0, 0, kl, entropy],
    ]
    return measured.combined(np.array(mixture))


@dataclass(frozen=True)
class Pass:
    """The groups of one pass: all played groups, or the groups kept by the filter.

    Attributes:
        groups: indices of the pass's groups among all played groups, [M].
        products: inner products of the groups' gradients, with the components before `mix`.
        trajectories, tokens: number of trajectories and sampled tokens of each group, int [M].
    """

    groups: np.ndarray
    products: GroupProducts
    trajectories: np.ndarray
    tokens: np.ndarray


def bucket_table(
    passes: Mapping[str, Pass],
    deviations: np.ndarray,
    config: GradientsConfig,
    shift: float,
    scale: float,
) -> tuple[pd.DataFrame, dict[str, dict[int, str]]]:
    """Compute one row per pass, bucket and component, and the bucket of each group in each pass.

    Every bucket has at least two groups, so a pass with few groups has fewer buckets, or none.

    Args:
        deviations: standard deviation of the returns of each played group, [G].
        shift, scale: advantages A are transformed to (A - shift) / scale.
    """
    weights = config.kl_coefficient, config.entropy_coefficient
    coefficients = (1.0, 1.0, *weights, 1.0)
    rows, places = [], {}
    for name, measured in passes.items():
        spread = deviations[measured.groups]
        if len(spread) < 2:
            continue
        cut = buckets(spread, config.mode, min(config.buckets, len(spread) // 2))
        places[name] = {
            int(measured.groups[index]): bucket.name
            for bucket in cut[:-1]
            for index in bucket.groups
        }
        mixed = mix(measured.products, shift, scale, *weights)
        counted = replace(measured, products=mixed)
        rows += [{"pass": name, **row} for row in _bucket_rows(counted, cut, spread, coefficients)]
    return pd.DataFrame(rows), places


def _bucket_rows(
    measured: Pass, cut: Sequence[Bucket], deviations: np.ndarray, coefficients: Sequence[float]
) -> list[dict[str, object]]:
    """Rows of all buckets with at least two groups, with bootstrap intervals over groups.

    Args:
        measured: products with the components `SHOWN`.
        cut: the buckets, of which the last contains all groups.
        deviations: standard deviation of each group's returns, [M].
        coefficients: weights of the components in the analysis.
    """
    rows = []
    for bucket in cut:
        if len(bucket.groups) < 2:
            continue
        part, spread = measured.products.of(bucket.groups), deviations[bucket.groups]
        statistics = bucket_statistics(part, resamples(len(bucket.groups)))
        to_all = cosine_to_all(measured.products, bucket.groups)
        for index, (component, coefficient) in enumerate(zip(SHOWN, coefficients, strict=True)):
            rows.append(
                {
                    "bucket": bucket.name,
                    "component": component,
                    "groups": len(bucket.groups),
                    "trajectories": measured.trajectories[bucket.groups].sum(),
                    "tokens": measured.tokens[bucket.groups].sum(),
                    "deviation": spread.mean(),
                    "deviation_min": spread.min(),
                    "deviation_max": spread.max(),
                    "coefficient": coefficient,
                    "loss": statistics.loss[0, index],
                    "norm": statistics.norm[0, index],
                    # If the noise is 0, the signal cannot be computed from `signal_to_noise`.
                    "signal": statistics.signal[0, index],
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
