"""Return-to-go: the discounted sum of a turn's credit and all later credit, minus a peer baseline.

    G_t = c_t + discount * G_{t+1}

A baseline that does not depend on the turn's action leaves the policy gradient unbiased. `peers`
and `playing_peers` are such baselines, because they are means over the other trajectories of the
group at the same turn number. Whether a trajectory reaches turn t is decided before the action of
turn t. The turn norm `position` is not such a baseline, because its mean includes the trajectory
itself: if n trajectories reach turn t, it shrinks the credit of turn t by (n - 1) / n, so a single
survivor gets 0.

This holds if a turn's credit does not depend on later turns, as with progress. It does not hold for
shares of the return. Earlier turns then hold a part of the reward of turn t that G_t omits, so the
sum is biased.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from hgrpo.config.strict import Strict
from hgrpo.credit.settings import CreditSettings

Baseline = Literal["peers", "playing_peers", "none"]


class ToGo(Strict):
    """The credit of a turn is the sum of its own and all later credit, minus a baseline."""

    discount: float = Field(
        1.0, ge=0, le=1, description="discount factor per turn; 1: no discounting"
    )
    baseline: Baseline = Field(
        "peers",
        description="peers: mean return-to-go of the other trajectories at the same turn number, "
        "with 0 for those that have ended; playing_peers: mean over those that reached the turn, 0 "
        "if no other did; none: 0. All are unbiased",
    )


class ToGoSettings(CreditSettings):
    """Keys of assigners with optional return-to-go credit."""

    to_go: ToGo | None = Field(
        None, description="return-to-go: the sum of own and later credit; null: own credit only"
    )

    @property
    def demands(self) -> Mapping[str, tuple[object, str]]:  # type: ignore[override]
        """Refuse a turn norm after a baseline, because it would be a second baseline."""
        if self.to_go is None or self.to_go.baseline == "none":
            return {}
        return {"turn_norm": ("none", "return-to-go already has an unbiased baseline")}


def to_go(row: np.ndarray, discount: float) -> np.ndarray:
    """Return-to-go G [T] from the credit [T] of a trajectory's turns."""
    sums = np.zeros(len(row))
    later = 0.0
    for turn in range(len(row) - 1, -1, -1):
        later = row[turn] + discount * later
        sums[turn] = later
    return sums


def peer_baselines(rows: Sequence[np.ndarray], baseline: Baseline) -> list[np.ndarray]:
    """Baseline of every turn, K arrays [T_k], from the returns-to-go of K trajectories [T_k]."""
    lengths = np.array([len(row) for row in rows])
    if baseline == "none" or len(rows) < 2:
        return [np.zeros(length) for length in lengths]
    padded = np.zeros((len(rows), lengths.max()))
    for k, row in enumerate(rows):
        padded[k, : len(row)] = row
    compared = np.full(padded.shape, True)
    if baseline == "playing_peers":
        compared = np.arange(lengths.max()) < lengths[:, None]
    number = compared.sum(axis=0) - compared
    means = (padded.sum(axis=0) - padded) / np.maximum(number, 1)
    # Avoid rounding errors of the difference above: exact for equal sums, and 0 without peers.
    lowest = np.where(compared, padded, np.inf).min(axis=0)
    equal = np.where(compared, padded, -np.inf).max(axis=0) == lowest
    means = np.where(number > 0, np.where(equal, lowest, means), 0.0)
    return [values[:length] for values, length in zip(means, lengths, strict=True)]


def credit_to_go(rows: list[np.ndarray], settings: ToGo | None) -> list[np.ndarray]:
    """Returns-to-go minus their baselines, K float64 arrays [T_k]; `rows` if settings are None."""
    if settings is None:
        return rows
    sums = [to_go(row, settings.discount) for row in rows]
    baselines = peer_baselines(sums, settings.baseline)
    return [row - baseline for row, baseline in zip(sums, baselines, strict=True)]
