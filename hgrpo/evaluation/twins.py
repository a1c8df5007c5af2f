"""Pairs of arms that are one method under two names: their advantages are equal up to scale.

Of two advantages a and b over the same turns, the best common factor leaves the share

    1 - (a . b)^2 / (|a|^2 |b|^2)

of the squares of either unexplained, and all of them if a . b <= 0.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from hgrpo.evaluation.truth.update_settings import ArmUpdate

# Largest unexplained share of two arms that are nearly one method.
NEAR = 1e-3
_COLUMNS = ["method_a", "method_b", "label_a", "label_b", "unexplained"]
# The keys of a method that affect its advantages.
_ADVANTAGES = {"credit", "alpha", "group_norm", "turn_norm", "norm_floor"}


def unexplained(a: np.ndarray, b: np.ndarray) -> float:
    """The share above, for float64 [turns]; NaN if one of them is 0 everywhere."""
    squares = float(a @ a) * float(b @ b)
    return 1 - max(0.0, float(a @ b)) ** 2 / squares if squares else float("nan")


def twins(
    advantages: Sequence[Mapping[str, np.ndarray]],
    updates: Mapping[str, ArmUpdate],
    labels: Mapping[str, str],
) -> pd.DataFrame:
    """The pairs that are, or nearly are, one method: names, labels and the share `unexplained`.

    The arms of a pair differ in settings of their advantages only. Of declared twins, which differ
    in their random numbers only, the first counts. Null controls are left out.

    Args:
        advantages: for the rollouts of each policy, method -> float64 [turns]; NaN for turns that
            were not credited.
    """
    arms: list[str] = []
    for name, update in updates.items():
        declared = update.method.credit.declared
        null = declared.is_control and not declared.of_turns
        if not (null or any(not _differ(update, updates[arm]) for arm in arms)):
            arms.append(name)
    common = [name for name in arms if all(name in each for each in advantages)]
    joined = {name: np.concatenate([each[name] for each in advantages]) for name in common}
    rows = []
    for a, b in combinations(joined, 2):
        known = np.isfinite(joined[a]) & np.isfinite(joined[b])
        share = unexplained(joined[a][known], joined[b][known])
        if share <= NEAR and _differ(updates[a], updates[b]) <= _ADVANTAGES:
            rows.append((a, b, labels[a], labels[b], share))
    return pd.DataFrame(rows, columns=_COLUMNS)


def _differ(a: ArmUpdate, b: ArmUpdate) -> set[str]:
    """The keys in which two arms differ, random numbers and names apart."""
    names = {"name", "label", "stream", "training"}
    one, two = (u.method.model_dump(exclude=names) | {"training": u.training} for u in (a, b))
    return {key for key, value in one.items() if two[key] != value}
