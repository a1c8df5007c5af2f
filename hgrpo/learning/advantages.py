"""Computes a group's trajectory, turn and blended advantages, and detects dead groups.

A group consists of K trajectories of one task. Returns are float [K]. Credit is a list of K arrays
[T_k] with one value per turn. Trajectory advantages follow GRPO (Shao et al. 2024, "DeepSeekMath:
Pushing the Limits of Mathematical Reasoning in Open Language Models",
https://arxiv.org/abs/2402.03300). Turn advantages and the blend follow H-GRPO, the reference
system.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from hgrpo.standardise import standardise

TurnNorm = Literal["position", "group", "none"]
GroupNorm = Literal["std", "sample_std", "mean"]
DeadGroups = Literal["skip", "skip_equal_returns", "keep"]
# If `turn_share` is below this value and credit has mean 0, the advantages have a correlation of at
# least 0.995 with those of flat GRPO.
_FAINT = 0.01
# Above this `offset_share`, one sign accounts for over 85 % of the sum of absolute advantages.
_ONE_SIDED = 0.7
# Above this `top_share`, a few turns dominate. For Gaussian advantages, `top_share` is 0.08.
_WILD = 0.9


def trajectory_advantages(returns: np.ndarray, norm: GroupNorm, floor: float) -> np.ndarray:
    """Trajectory advantages A_traj [K] from the returns [K] of a group.

    `std` subtracts the mean and divides by the population standard deviation, but at least by
    `floor`. `sample_std` uses the sample standard deviation (denominator K - 1), as in GRPO. `mean`
    only subtracts the mean, as in Dr. GRPO (Liu et al. 2025, "Understanding R1-Zero-Like Training:
    A Critical Perspective", https://arxiv.org/abs/2503.20783).
    """
    returns = np.asarray(returns, dtype=np.float64)
    if norm == "std":
        return standardise(returns, floor)
    if norm == "sample_std" and len(returns) > 1 and np.ptp(returns) > 0:
        return (returns - returns.mean()) / max(returns.std(ddof=1), floor)
    return returns - returns.mean() if np.ptp(returns) > 0 else np.zeros_like(returns)


def turn_advantages(credit: Sequence[np.ndarray], norm: TurnNorm, floor: float) -> list[np.ndarray]:
    """Turn advantages A_turn, K arrays [T_k], from turn credit of the same shapes.

    `position`, as in H-GRPO, computes z-scores over the turns with the same turn number. A single
    turn has z-score 0. `group` computes z-scores over all turns of the group. `none` returns the
    credit unchanged. `floor` is the lower bound of the standard deviation.
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
    """Whether credit, K arrays [T_k], is constant within every trajectory.

    Differences up to 1e-6 of the largest value are ignored. If no trajectory has two turns, the
    result is whether all turns have the same value.
    """
    rows = [row for row in credit if len(row) > 1] or [np.concatenate([*credit, np.zeros(0)])]
    largest = max((np.abs(row).max() for row in rows if len(row)), default=0.0)
    return all(np.ptp(row) <= 1e-6 * largest for row in rows if len(row))


def advantage_shares(advantages: Sequence[np.ndarray]) -> dict[str, float | None]:
    """Log entries about `advantages`, one array [T_k] per trajectory. All entries are in [0, 1].

    - `turn_share`: share of the sum of squares that is due to variation within trajectories.
      Trajectories with one turn are not included. It is 0 for flat GRPO.
    - `top_share`: share of the sum of squares due to the largest 1 % of advantages. It is None if
      there are fewer than 100 turns.
    - `offset_share`: absolute value of the sum, divided by the sum of absolute values. It is 1 if
      all advantages have the same sign, and 0 if their mean is 0.

    All entries are None if all advantages are 0.
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
    """Warnings about the size and distribution of turn credit and advantages, or "".

    Args:
        sizes: entries of `log_row.advantage_row`; missing entries and None are ignored.
        alpha: weight of the trajectory's advantage.
        floor: lower bound of the standard deviation in z-scores of credit; 0 if credit is not
            converted to z-scores.
        flat: reason why credit is constant within every trajectory, or "".
    """
    cautions: list[str] = []
    known = {name: value for name, value in sizes.items() if value is not None}
    if known.get("offset_share", 0.0) > _ONE_SIDED:
        cautions.append(
            f"over {50 * (1 + _ONE_SIDED):g} % of the absolute sum of its advantages has one sign, "
            "so training raises (or lowers) the probability of most replies; centre the credit"
        )
    if flat:
        cautions.append(f"its credit is the same for all turns of a trajectory ({flat})")
        return "; ".join(cautions)
    remedy = "(see alpha, turn_norm, and the credit's size and mean)"
    if known.get("turn_share", 1.0) < _FAINT:
        cautions.append(
            f"under {100 * _FAINT:g} % of the sum of squares of its advantages lies between turns "
            f"of a trajectory, so its credit hardly distinguishes turns {remedy}"
        )
    if known.get("top_share", 0.0) > _WILD:
        cautions.append(
            f"1 % of its turns hold over {100 * _WILD:g} % of the sum of squares of its "
            "advantages, so a few turns dominate the update"
        )
    trajectory = alpha * known.get("mean_abs_traj_adv", 0.0)
    if 0 < trajectory < _FAINT * (1 - alpha) * known.get("mean_abs_turn_adv", 0.0):
        cautions.append(
            f"its turn credit is over {1 / _FAINT:g} times as large as the trajectory's advantage, "
            f"so the return has hardly any effect {remedy}"
        )
    if 0 < known.get("max_abs_credit", 0.0) < floor:
        cautions.append(
            f"its credit is smaller than norm_floor {floor:g}, so z-scores deviate by less than 1"
        )
    return "; ".join(cautions)


def blend(alpha: float, trajectory: np.ndarray, turns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """alpha * A_traj [K] + (1 - alpha) * A_turn, K arrays of shape [T_k].

    If alpha is 1, the result is bitwise equal to A_traj, regardless of the credit.
    """
    if alpha == 1.0:
        return [np.full(len(row), a) for a, row in zip(trajectory, turns, strict=True)]
    return [
        alpha * a + (1.0 - alpha) * np.asarray(row)
        for a, row in zip(trajectory, turns, strict=True)
    ]


def is_dead(advantages: Sequence[np.ndarray], returns: np.ndarray, rule: DeadGroups) -> bool:
    """Whether a group has no policy gradient, because all blended advantages are zero.

    With `skip_equal_returns`, a group is also dead if all its returns [K] are equal, regardless of
    its turn credit, as in H-GRPO.
    """
    if rule == "skip_equal_returns" and np.ptp(returns) == 0:
        return True
    return all(not np.any(row) for row in advantages)


def takes_part(dead: bool, rule: DeadGroups, penalised: bool) -> bool:
    """Whether the update uses a group. `dead` is the result of `is_dead` for this group.

    If `penalised`, the rule `skip` keeps all groups, because the KL penalty or the entropy bonus
    also acts on dead groups. The rule `skip_equal_returns` excludes dead groups, as in H-GRPO.
    """
    return not dead or rule == "keep" or (rule == "skip" and penalised)
