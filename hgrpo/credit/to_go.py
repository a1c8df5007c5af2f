"""Return-to-go: the discounted sum of the credit from a turn on, minus a baseline.

    G_t = c_t + discount * G_{t+1}

The policy gradient remains unbiased if the baseline does not depend on the turn's action. This is
true of `peers` and `playing_peers`, which are means over the other trajectories of the group at the
same turn number: whether a trajectory reaches turn t does not depend on its action at turn t. The
turn norm `position` causes a bias, because its mean includes the trajectory itself. At a turn that
n trajectories reach, the credit with `position` is (n - 1) / n times that with `playing_peers`.

The gradient is also biased if a turn's credit depends on later turns, which is true of shares of
the return, but not of progress. Part of the reward of turn t is then assigned to earlier turns, and
is missing from G_t.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from hgrpo.config.strict import Strict
from hgrpo.credit.settings import CreditSettings

Baseline = Literal["peers", "playing_peers", "none"]


class ToGo(Strict):
    """Settings of return-to-go credit: the sum of the credit from a turn on."""

    discount: float = Field(
        1.0, ge=0, le=1, description="discount factor per turn; 1: no discounting"
    )
    baseline: Baseline = Field(
        "peers",
        description="unbiased baseline. peers: mean return-to-go of the other trajectories at the "
        "same turn number, where ended trajectories count as 0; playing_peers: the same mean, but "
        "only over trajectories that reached the turn, or 0 if there are none; none: 0",
    )


class ToGoSettings(CreditSettings):
    """Keys of assigners with optional return-to-go credit."""

    to_go: ToGo | None = Field(
        None, description="add the credit of later turns (return-to-go); null: do not add it"
    )

    @property
    def demands(self) -> Mapping[str, tuple[object, str]]:  # type: ignore[override]
        """Reject a turn norm if there is a baseline, because a turn norm is also a baseline."""
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
    """Return the baseline of every turn, K arrays [T_k]. `rows` are the returns-to-go."""
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
    # If the peers' returns-to-go are equal, use their value. If there are no peers, use 0.
    lowest = np.where(compared, padded, np.inf).min(axis=0)
    equal = np.where(compared, padded, -np.inf).max(axis=0) == lowest
    means = np.where(number > 0, np.where(equal, lowest, means), 0.0)
    return [values[:length] for values, length in zip(means, lengths, strict=True)]


def credit_to_go(rows: list[np.ndarray], settings: ToGo | None) -> list[np.ndarray]:
    """Compute return-to-go credit, K float64 arrays [T_k]. If `settings` is None, return `rows`."""
    if settings is None:
        return rows
    sums = [to_go(row, settings.discount) for row in rows]
    baselines = peer_baselines(sums, settings.baseline)
    return [row - baseline for row, baseline in zip(sums, baselines, strict=True)]
