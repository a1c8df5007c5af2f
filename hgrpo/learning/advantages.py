"""A group's advantages: trajectory, turn and blended; and the rule for groups without a gradient.

A group is K trajectories of one task. Returns are float [K]; credit is K arrays, the k-th of shape
[T_k] with one number per turn. The trajectory's advantage is that of GRPO (Shao et al. 2024,
"DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models",
https://arxiv.org/abs/2402.03300). The turn's advantage and the blend are those of H-GRPO, the
reference system.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from hgrpo.standardise import standardise

TurnNorm = Literal["position", "group", "none"]
GroupNorm = Literal["std", "sample_std", "mean"]
DeadGroups = Literal["skip", "skip_equal_returns", "keep"]
# Below this share, advantages with credit of mean 0 correlate with flat GRPO's by 0.995 or more.
_FAINT = 0.01
# Above this `offset_share`, 85 % of the advantages' absolute sum has one sign.
_ONE_SIDED = 0.7
# Of normal advantages, a hundredth of the turns holds 8 % of the sum of squares.
_WILD = 0.9


def trajectory_advantages(returns: np.ndarray, norm: GroupNorm, floor: float) -> np.ndarray:
    """A_traj [K] from the returns [K] of a group.

    `std` divides by the group's population deviation, or by `floor` if that is larger. `sample_std`
    divides by the deviation of a sample, whose denominator is K - 1, as GRPO's authors do. `mean`
    only centres, as Liu et al. 2025 do in "Understanding R1-Zero-Like Training: A Critical
    Perspective" (Dr. GRPO), https://arxiv.org/abs/2503.20783.
    """
    returns = np.asarray(returns, dtype=np.float64)
    if norm == "std":
        return standardise(returns, floor)
    if norm == "sample_std" and len(returns) > 1 and np.ptp(returns) > 0:
        return (returns - returns.mean()) / max(returns.std(ddof=1), floor)
    return returns - returns.mean() if np.ptp(returns) > 0 else np.zeros_like(returns)


def turn_advantages(credit: Sequence[np.ndarray], norm: TurnNorm, floor: float) -> list[np.ndarray]:
    """A_turn, K arrays of shape [T_k], from the turns' credit in the same shapes.

    `position` is H-GRPO's rule: it z-scores each turn over the trajectories that reached the same
    turn number. If only one trajectory reached a turn number, that turn gets 0. `group` z-scores
    over all turns of the group. `none` leaves the credit as it is. `floor` is the lower bound of
    the deviation.
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


def is_flat(credit: Sequence[np.ndarray]) -> bool:
    """Whether K arrays [T_k] are constant over each trajectory's turns.

    Differences up to 1e-6 of the largest value are rounding. If no trajectory has two turns, the
    arrays are flat if all turns are equal.
    """
    rows = [row for row in credit if len(row) > 1] or [np.concatenate([*credit, np.zeros(0)])]
    largest = max((np.abs(row).max() for row in rows if len(row)), default=0.0)
    return all(np.ptp(row) <= 1e-6 * largest for row in rows if len(row))


def advantage_shares(advantages: Sequence[np.ndarray]) -> dict[str, float | None]:
    """Log entries about advantages, arrays [T_k] of trajectories: numbers from 0 to 1, or None.

    - `turn_share`: share of the sum of squares that lies between turns of one trajectory, over
      trajectories of two or more turns. 0 is flat GRPO.
    - `top_share`: share of the sum of squares of the largest hundredth of the turns. None for fewer
      than a hundred turns.
    - `offset_share`: absolute sum over the sum of absolute values: 1 if all have one sign, 0 if
      their mean is 0.

    All are None if the advantages are 0.
    """
    rows = [row for row in advantages if len(row) > 1]
    within = sum(float(np.square(row).sum()) for row in rows)
    between = sum(float(np.square(row - row.mean()).sum()) for row in rows)
    values = np.concatenate([*advantages, np.zeros(0)])
    squares, absolute = np.sort(np.square(values)), float(np.abs(values).sum())
    total, largest = float(squares.sum()), len(squares) // 100
    return {
        "turn_share": between / within if within else None,
        "top_share": float(squares[-largest:].sum()) / total if total and largest else None,
        "offset_share": abs(float(values.sum())) / absolute if absolute else None,
    }


def size_caution(
    sizes: Mapping[str, float | None], alpha: float, floor: float, flat: str = ""
) -> str:
    """Why the size of turn credit leaves it, or the return, without effect; "" without a reason.

    Args:
        sizes: entries of `log_row.advantage_row`; a missing entry and None give no caution.
        alpha: share of the trajectory's advantage.
        floor: least deviation that a z-score of credit divides by; 0 without z-scores.
        flat: why credit is equal over the turns of every trajectory, if it is.
    """
    cautions: list[str] = []
    known = {name: value for name, value in sizes.items() if value is not None}
    if known.get("offset_share", 0.0) > _ONE_SIDED:
        cautions.append(
            f"over {50 * (1 + _ONE_SIDED):g} % of its advantages' absolute sum has one sign, so "
            "training raises, or lowers, the probability of most replies; centre the credit"
        )
    if flat:
        cautions.append(f"its credit tells no turn of a trajectory from another ({flat})")
        return "; ".join(cautions)
    remedy = "(see alpha, turn_norm, and the credit's size and mean)"
    if known.get("turn_share", 1.0) < _FAINT:
        cautions.append(
            f"under {100 * _FAINT:g} % of its advantages' sum of squares lies between turns of a "
            f"trajectory, so its credit hardly tells turns apart {remedy}"
        )
    if known.get("top_share", 0.0) > _WILD:
        cautions.append(
            f"a hundredth of its turns holds over {100 * _WILD:g} % of its advantages' sum of "
            "squares, so few numbers rule the update"
        )
    trajectory = alpha * known.get("mean_abs_traj_adv", 0.0)
    if 0 < trajectory < _FAINT * (1 - alpha) * known.get("mean_abs_turn_adv", 0.0):
        cautions.append(
            f"its turn credit is over {1 / _FAINT:g} times as large as the trajectory's advantage, "
            f"so the return hardly counts {remedy}"
        )
    if 0 < known.get("max_abs_credit", 0.0) < floor:
        cautions.append(
            f"its credit is smaller than norm_floor {floor:g}, so no z-score has deviation 1"
        )
    return "; ".join(cautions)


def blend(alpha: float, trajectory: np.ndarray, turns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """alpha * A_traj [K] + (1 - alpha) * A_turn, K arrays of shape [T_k].

    Every token of a turn gets the turn's number. At alpha = 1 the result is A_traj to the bit,
    whatever the credit was.
    """
    if alpha == 1.0:
        return [np.full(len(row), a) for a, row in zip(trajectory, turns, strict=True)]
    return [
        alpha * a + (1.0 - alpha) * np.asarray(row)
        for a, row in zip(trajectory, turns, strict=True)
    ]


def is_dead(advantages: Sequence[np.ndarray], returns: np.ndarray, rule: DeadGroups) -> bool:
    """Whether a group gives no policy gradient, because every blended advantage is zero.

    Under `skip_equal_returns` a group is also dead if all its returns [K] are equal, as in H-GRPO.
    The turns' credit of such a group is then not used.
    """
    if rule == "skip_equal_returns" and np.ptp(returns) == 0:
        return True
    return all(not np.any(row) for row in advantages)


def takes_part(dead: bool, rule: DeadGroups, penalised: bool) -> bool:
    """Whether the update uses a group; `dead` comes from `is_dead`.

    A KL penalty acts on dead groups too. Under such a penalty (`penalised`), `skip` therefore
    leaves no group out. `skip_equal_returns` still leaves dead groups out, as in H-GRPO.
    """
    return not dead or rule == "keep" or (rule == "skip" and penalised)
