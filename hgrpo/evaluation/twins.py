"""Pairs of arms that are one method under two names: their advantages are equal up to scale.

Of two advantages a and b over the same turns, the best common factor leaves the share

    1 - (a . b)^2 / (|a|^2 |b|^2)

of the squares of either unexplained, and all of them if a . b <= 0.
"""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from hgrpo.evaluation.truth.update_settings import ArmUpdate

# Largest unexplained share of one method, and of what is nearly one.
SAME, NEAR = 1e-6, 1e-3
COLUMNS = ("method_a", "method_b", "label_a", "label_b", "turns", "unexplained")
# The keys of a method that its advantages depend on; in all others one method has one value.
_ADVANTAGES = {"credit", "alpha", "group_norm", "turn_norm", "norm_floor"}


def unexplained(a: np.ndarray, b: np.ndarray) -> float:
    """The share above, for float64 [turns]; NaN if one of them is 0 everywhere."""
    squares = float(a @ a) * float(b @ b)
    return 1 - max(0.0, float(a @ b)) ** 2 / squares if squares else float("nan")


def twins(
    advantages: Mapping[str, np.ndarray],
    updates: Mapping[str, ArmUpdate],
    labels: Mapping[str, str],
) -> pd.DataFrame:
    """One row for each pair that is, or nearly is, one method, with the columns `COLUMNS`.

    A pair differs in what its advantages are made of, and in nothing else of its training. Of
    declared twins, which differ in their random numbers alone, the first counts. Null controls are
    left out.

    Args:
        advantages: method -> float64 [turns]; NaN for turns that were not credited.
    """
    arms: list[str] = []
    for name in advantages:
        update = updates[name]
        if not (_is_null(update) or any(_differ(update, updates[arm]) == set() for arm in arms)):
            arms.append(name)
    rows = []
    for a, b in combinations(arms, 2):
        known = np.isfinite(advantages[a]) & np.isfinite(advantages[b])
        share = unexplained(advantages[a][known], advantages[b][known])
        if share <= NEAR and _differ(updates[a], updates[b]) <= _ADVANTAGES:
            rows.append((a, b, labels[a], labels[b], int(known.sum()), share))
    return pd.DataFrame(rows, columns=COLUMNS)


def sentence(row: Mapping) -> str:
    """What a reader must know of a pair."""
    pair = f"{row['label_a']} and {row['label_b']}"
    if row["unexplained"] <= SAME:
        return (
            f"{pair} are one method under two names: on the same rollouts their advantages are "
            "equal up to scale."
        )
    return (
        f"{pair} are nearly one method: on the same rollouts a common factor explains all but "
        f"{100 * row['unexplained']:.1g} % of the squares of their advantages."
    )


def _differ(a: ArmUpdate, b: ArmUpdate) -> set[str]:
    """The keys in which two arms differ, random numbers and names apart."""
    left_out = {"name", "label", "stream", "training"}
    made, other = (
        each.method.model_dump(exclude=left_out) | {"training": each.training} for each in (a, b)
    )
    return {key for key, value in made.items() if other[key] != value}


def _is_null(update: ArmUpdate) -> bool:
    declared = update.method.credit.declared
    return declared.is_control and not declared.of_turns
