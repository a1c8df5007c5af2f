"""Estimates the number of trajectories until an arm reaches a score threshold, with censoring.

A run's time to a threshold is the number of trajectories, including continuations
(`hgrpo.trajectories.log_row`), up to the end of the first round whose greedy test score is at least
the threshold. The common horizon is the end of the run with the fewest trajectories. Runs that have
not reached the threshold by then are censored at the horizon. Censoring is taken into account by
the Kaplan-Meier estimator and by the restricted mean. No verdicts are derived from these times.

Sources: Kaplan and Meier 1958, "Nonparametric Estimation from Incomplete Observations"
(https://doi.org/10.1080/01621459.1958.10501452); Royston and Parmar 2013, "Restricted mean survival
time" (https://doi.org/10.1186/1471-2288-13-152).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from statsmodels.duration.survfunc import SurvfuncRight

from hgrpo.evaluation.over_seeds import seed_interval

# Columns of a table with cumulative counts of trajectories and replies at the end of each round.
PLAY = ["method", "seed", "round", "trajectories", "replies"]
# Positions of thresholds between the SFT policy's score (0) and the reference's final score (1).
SHARES = (0.25, 0.5, 0.75)


def derived(start: float, end: float) -> list[float]:
    """Thresholds between `start` and `end`, at the fractions `SHARES`, rounded to whole per cent.

    `end` is the score in the reference's last round, so that results of other arms do not affect
    the thresholds. If `end` is not above `start`, `start` is the only threshold.
    """
    if end <= start:
        return [round(start, 2)]
    return sorted({round(start + share * (end - start), 2) for share in SHARES})


def without_zero(thresholds: Sequence[float], scores: pd.Series) -> list[float]:
    """Drop a threshold of 0 if no score is negative, because all runs reach it immediately."""
    return [each for each in thresholds if each != 0 or (scores < 0).any()]


def first_rounds(
    runs: pd.DataFrame, thresholds: Sequence[float], column: str, play: pd.DataFrame
) -> pd.DataFrame:
    """One row per threshold and run: whether and when the run reached the threshold.

    Args:
        runs: scores by round, with the columns method, seed, round and `column`.
        play: cumulative counts at the end of each round, with the columns `PLAY`.

    Returns:
        Columns threshold, method, seed, reached, round, trajectories, replies and end. `round` is
        the round in which the run reached the threshold, or the last round if the run did not reach
        it. `trajectories` and `replies` are the counts at the end of this round. `end` is the run's
        total number of trajectories.
    """
    rows = []
    played = play.set_index(PLAY[:3])[PLAY[3:]]
    for threshold in thresholds:
        for (method, seed), run in runs.groupby(["method", "seed"], sort=False):
            high = run.loc[run[column] >= threshold, "round"]
            last = int(run["round"].max())
            number = int(high.min()) if len(high) else last
            then = played.loc[(method, seed, number)]
            rows.append(
                {
                    "threshold": threshold,
                    "method": method,
                    "seed": seed,
                    "reached": len(high) > 0,
                    "round": number,
                    "trajectories": int(then["trajectories"]),
                    "replies": int(then["replies"]) if pd.notna(then["replies"]) else np.nan,
                    "end": int(played.loc[(method, seed, last), "trajectories"]),
                }
            )
    return pd.DataFrame(rows)


def curve(times: Sequence[float], reached: Sequence[bool]) -> tuple[np.ndarray, np.ndarray]:
    """Return the times and values of the steps of a Kaplan-Meier curve, starting at time 0.

    The value is the estimated share of runs that have not yet reached the threshold.
    """
    estimate = SurvfuncRight(np.asarray(times, float), np.asarray(reached, int))
    return np.r_[0.0, estimate.surv_times], np.r_[1.0, estimate.surv_prob]


def restricted_mean(times: Sequence[float], reached: Sequence[bool], horizon: float) -> float:
    """Restricted mean time to the threshold: the area under `curve` up to the horizon."""
    steps, shares = curve(times, reached)
    inside = steps < horizon
    widths = np.diff(np.r_[steps[inside], horizon])
    return float(widths @ shares[inside])


def summary(first: pd.DataFrame, reference: str, level: float) -> pd.DataFrame:
    """One row per threshold and arm; `first` is the table of `first_rounds`.

    The horizon is the end of the run with the fewest trajectories. `reached` is the number of runs
    that reach the threshold by the horizon. The restricted mean and its interval do not exceed the
    horizon. The median is NaN unless more than half of the runs reach the threshold by the horizon.
    The difference from the reference is paired by seed. Intervals are t intervals over seeds, NaN
    with one seed or if all values are equal.
    """
    if first.empty:
        return pd.DataFrame()
    horizon = common_horizon(first)
    rows = []
    for (threshold, method), mine in first.groupby(["threshold", "method"], sort=False):
        theirs = first[(first["threshold"] == threshold) & (first["method"] == reference)]
        time, other = (
            table.set_index("seed")["trajectories"].clip(upper=horizon).astype(float)
            for table in (mine, theirs)
        )
        in_time = mine["reached"] & (mine["trajectories"] <= horizon)
        estimate = SurvfuncRight(time.to_numpy(), in_time.to_numpy(int))
        rows.append(
            {
                "threshold": threshold,
                "method": method,
                "n_seeds": len(mine),
                "reached": int(in_time.sum()),
                "median": estimate.quantile(0.5),
                "restricted_mean": restricted_mean(mine["trajectories"], mine["reached"], horizon),
                **{end: np.clip(at, 0, horizon) for end, at in _ends(time, level, "").items()},
                "difference": (time - other).mean(),
                **_ends(time - other, level, "difference_"),
                "horizon": horizon,
            }
        )
    return pd.DataFrame(rows)


def curves(first: pd.DataFrame) -> pd.DataFrame:
    """Share of each arm's runs that have reached each threshold, as a function of trajectories.

    There is one row per step of `curve`, and a last row at the horizon.
    """
    horizon, parts = common_horizon(first), []
    for (threshold, method), mine in first.groupby(["threshold", "method"], sort=False):
        steps, shares = curve(mine["trajectories"], mine["reached"])
        inside = steps <= horizon
        steps, shares = np.r_[steps[inside], horizon], np.r_[shares[inside], shares[inside][-1]]
        parts.append(
            pd.DataFrame({"trajectories": steps, "share_reached": 1 - shares}).assign(
                threshold=threshold, method=method
            )
        )
    return pd.concat(parts, ignore_index=True)[
        ["threshold", "method", "trajectories", "share_reached"]
    ]


def common_horizon(first: pd.DataFrame) -> float:
    """Smallest total number of trajectories of any run; `first` is from `first_rounds`."""
    return float(first["end"].min())


def _ends(values: pd.Series, level: float, prefix: str) -> dict[str, float]:
    if values.nunique() < 2:  # times are rounded up to ends of rounds, which can hide the variance
        lower = upper = np.nan
    else:
        estimate = seed_interval(values.to_numpy(), level)
        lower, upper = estimate.lower, estimate.upper
    return {f"{prefix}lower": float(lower), f"{prefix}upper": float(upper)}
