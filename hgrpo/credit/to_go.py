"""Return to go: the sum of a turn's own and all later credit, less a baseline from peers.

    G_t = c_t + discount * G_{t+1}

The policy gradient stays unbiased under any baseline that does not depend on the turn's own action.
`peers` and `playing_peers` are such baselines: they are computed from the other trajectories of the
group alone, at a fixed turn number. That a trajectory reached turn t at all was decided before the
action of turn t, so its own ending does not enter. A mean that includes the trajectory itself, as
in the turn norm `position`, is not such a baseline: it shrinks the credit of turn t by (n - 1) / n,
where n trajectories reached turn t, and a lone survivor gets 0.

This holds if the credit of a turn does not depend on later turns, as with progress. Shares of the
return do: earlier turns then hold a part of the reward of turn t, which G_t leaves out, so the sum
is biased.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from hgrpo.config.strict import Strict
from hgrpo.credit.settings import CreditSettings

Baseline = Literal["peers", "playing_peers", "none"]


class ToGo(Strict):
    """The credit of a turn is the sum of its own and all later credit, less a baseline."""

    discount: float = Field(
        1.0, ge=0, le=1, description="weight of the next turn's sum; 1: later turns count in full"
    )
    baseline: Baseline = Field(
        "peers",
        description="peers: mean of the sums of the other trajectories at the same turn number, 0 "
        "for those that have ended; playing_peers: mean over those that reached it, 0 if there is "
        "none; none: 0. All are unbiased",
    )


class ToGoSettings(CreditSettings):
    """Keys of assigners whose credit can be summed over the later turns."""

    to_go: ToGo | None = Field(
        None, description="return to go: the sum of own and later credit; null: own credit"
    )

    @property
    def demands(self) -> Mapping[str, tuple[object, str]]:  # type: ignore[override]
        """With a baseline, no second one may follow."""
        if self.to_go is None or self.to_go.baseline == "none":
            return {}
        return {"turn_norm": ("none", "return to go has its unbiased baseline already")}


def to_go(row: np.ndarray, discount: float) -> np.ndarray:
    """G [T] from the credit [T] of a trajectory's turns."""
    sums = np.zeros(len(row))
    later = 0.0
    for turn in range(len(row) - 1, -1, -1):
        later = row[turn] + discount * later
        sums[turn] = later
    return sums


def peer_baselines(rows: Sequence[np.ndarray], baseline: Baseline) -> list[np.ndarray]:
    """The baseline of every turn, K arrays [T_k], from the sums G of K trajectories [T_k]."""
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
    # Exact where the difference above may miss the value by rounding: equal sums, and no peers.
    lowest = np.where(compared, padded, np.inf).min(axis=0)
    equal = np.where(compared, padded, -np.inf).max(axis=0) == lowest
    means = np.where(number > 0, np.where(equal, lowest, means), 0.0)
    return [values[:length] for values, length in zip(means, lengths, strict=True)]


def credit_to_go(rows: list[np.ndarray], settings: ToGo | None) -> list[np.ndarray]:
    """Sums to go less their baselines, K float64 arrays [T_k]; `rows` as they are if None."""
    if settings is None:
        return rows
    sums = [to_go(row, settings.discount) for row in rows]
    baselines = peer_baselines(sums, settings.baseline)
    return [row - baseline for row, baseline in zip(sums, baselines, strict=True)]
