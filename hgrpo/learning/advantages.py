"""Advantages of a group: the trajectory's, the turns', and their blend.

A group is K trajectories of one task. Returns are [K]; credit is K arrays, the k-th of length T_k.
Formulas: Shao et al. 2024 (GRPO) for the trajectory, H-GRPO for turns and blend
(A = alpha * A_traj + (1 - alpha) * A_turn, broadcast to all tokens of the turn).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

TurnNorm = Literal["position", "group", "none"]
GroupNorm = Literal["std", "mean"]
DeadGroups = Literal["skip", "skip_equal_returns", "keep"]


def standardise(values: np.ndarray, floor: float) -> np.ndarray:
    """(x - mean) / max(population deviation, floor), same shape; an empty array stays empty.

    All-equal values give exact zeros, whatever rounding does to their mean.
    """
    if values.size == 0 or np.all(values == values.flat[0]):
        return np.zeros_like(values, dtype=np.float64)
    return (values - values.mean()) / max(values.std(), floor)


def trajectory_advantages(returns: np.ndarray, norm: GroupNorm, floor: float) -> np.ndarray:
    """A_traj [K]: z-scored in the group (`std`) or only centred (`mean`, as Dr.GRPO has it)."""
    returns = np.asarray(returns, dtype=np.float64)
    if norm == "std":
        return standardise(returns, floor)
    return returns - returns.mean() if np.ptp(returns) > 0 else np.zeros_like(returns)


def turn_advantages(credit: Sequence[np.ndarray], norm: TurnNorm, floor: float) -> list[np.ndarray]:
    """A_turn, K arrays of [T_k], from the turns' credit.

    Args:
        credit: credit of each turn of each trajectory.
        norm: `position` z-scores over the trajectories that reached the same turn number (the
            reference's rule; a position reached by one trajectory gets 0), `group` z-scores over
            all turns of the group, `none` passes the credit on.
        floor: lower bound of a deviation divided by.
    """
    rows = [np.asarray(row, dtype=np.float64) for row in credit]
    if norm == "none":
        return [row.copy() for row in rows]
    if norm == "group":
        flat = standardise(np.concatenate(rows) if rows else np.zeros(0), floor)
        return np.split(flat, np.cumsum([len(row) for row in rows])[:-1]) if rows else []
    result = [np.zeros(len(row)) for row in rows]
    for position in range(max((len(row) for row in rows), default=0)):
        reached = [k for k, row in enumerate(rows) if len(row) > position]
        scaled = standardise(np.array([rows[k][position] for k in reached]), floor)
        for k, value in zip(reached, scaled, strict=True):
            result[k][position] = value
    return result


def blend(alpha: float, trajectory: np.ndarray, turns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """alpha * A_traj + (1 - alpha) * A_turn, K arrays of [T_k].

    At alpha = 1 the result is A_traj to the bit, whatever the credit was.

    Raises:
        ValueError: alpha outside [0, 1].
    """
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must lie in [0, 1], not {alpha}")
    if alpha == 1.0:
        return [np.full(len(row), a) for a, row in zip(trajectory, turns, strict=True)]
    return [
        alpha * a + (1.0 - alpha) * np.asarray(row)
        for a, row in zip(trajectory, turns, strict=True)
    ]


def is_dead(advantages: Sequence[np.ndarray], returns: np.ndarray, rule: DeadGroups) -> bool:
    """Whether a group teaches nothing: every final advantage is zero.

    Under `skip_equal_returns` also where the returns [K] are all equal, as in H-GRPO; that throws
    away what the turns' credit has to say of such a group.
    """
    if rule == "skip_equal_returns" and np.ptp(returns) == 0:
        return True
    return all(not np.any(row) for row in advantages)


def takes_part(dead: bool, rule: DeadGroups, penalised: bool) -> bool:
    """Whether the update reads a group.

    Args:
        penalised: a KL penalty is on. It pulls on groups without advantages as on all others, so
            `skip` leaves out none then; `skip_equal_returns` does, as H-GRPO did.
    """
    return not dead or rule == "keep" or (rule == "skip" and penalised)
