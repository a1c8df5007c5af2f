"""Find arms that are the same method under two names, i.e. whose advantages are proportional.

Let a and b be the advantages of two arms on the same turns. The fraction of the sum of squares of a
that is not explained by a positive multiple of b is

    1 - (a . b)^2 / (|a|^2 |b|^2)  if a . b > 0, and 1 otherwise.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from hgrpo.evaluation.truth.update_settings import ArmUpdate

# Two arms are reported if the unexplained fraction of their advantages is at most this value.
NEAR = 1e-3
_COLUMNS = ["method_a", "method_b", "label_a", "label_b", "unexplained"]
# The keys of a method that affect its advantages.
_ADVANTAGES = {"credit", "alpha", "group_norm", "turn_norm", "norm_floor"}


def unexplained(a: np.ndarray, b: np.ndarray) -> float:
    """Fraction of `a` [turns] not explained by `b` [turns]; NaN if all of `a` or `b` is 0."""
    squares = float(a @ a) * float(b @ b)
    return 1 - max(0.0, float(a @ b)) ** 2 / squares if squares else float("nan")


def twins(
    advantages: Sequence[Mapping[str, np.ndarray]],
    updates: Mapping[str, ArmUpdate],
    labels: Mapping[str, str],
) -> pd.DataFrame:
    """Pairs of arms that are (nearly) the same method: names, labels, and unexplained fraction.

    The two arms may differ only in settings that affect advantages. If several arms differ only in
    their random numbers, only the first of them is used. Null controls are excluded.

    Args:
        advantages: for each policy's rollouts, a mapping from a method to its advantages, float64
            [turns]. They are NaN for turns without credit.
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
    """Settings in which two arms differ, ignoring names and random number streams."""
    names = {"name", "label", "stream", "training"}
    one, two = (u.method.model_dump(exclude=names) | {"training": u.training} for u in (a, b))
    return {key for key, value in one.items() if two[key] != value}
