"""Estimates the number of trajectories until an arm reaches a score threshold, with censoring.

All trajectories count, including continuations (`hgrpo.trajectories.log_row`). A run reaches a
threshold in the first round whose greedy test score is at least as high. Times are ends of rounds,
because scores between evaluations are unknown. A run that does not reach it by the common horizon,
the end of the run with the fewest trajectories, is censored there. The Kaplan-Meier estimator and
the mean restricted to that horizon take censoring into account.
Sources: Kaplan and Meier 1958, "Nonparametric Estimation from Incomplete Observations"
(https://doi.org/10.1080/01621459.1958.10501452); Royston and Parmar 2013, "Restricted mean survival
time" (https://doi.org/10.1186/1471-2288-13-152).

No verdict is given on these times.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from statsmodels.duration.survfunc import SurvfuncRight

from hgrpo.evaluation.over_seeds import seed_interval

# Columns of a table of cumulative play at the end of each round.
PLAY = ["method", "seed", "round", "trajectories", "replies"]
# Fractions of the way from the supervised policy's score to that of the reference's last round.
SHARES = (0.25, 0.5, 0.75)


def derived(start: float, end: float) -> list[float]:
    """Thresholds at `SHARES` of the way from `start` to `end`, rounded to whole per cent.

    `end` is the score of the reference's last round, so that the results of the other arms do not
    affect the thresholds. If `end` is not above `start`, `start` is the only threshold.
    """
    if end <= start:
        return [round(start, 2)]
    return sorted({round(start + share * (end - start), 2) for share in SHARES})


def without_zero(thresholds: Sequence[float], scores: pd.Series) -> list[float]:
    """Drop a threshold of 0, which every run reaches at once, unless a score is negative."""
    return [each for each in thresholds if each != 0 or (scores < 0).any()]


def first_rounds(
    runs: pd.DataFrame, thresholds: Sequence[float], column: str, play: pd.DataFrame
) -> pd.DataFrame:
    """One row per threshold and run: whether and when the run reached the threshold.

    Args:
        runs: scores by round, with the columns method, seed, round and `column`.
        play: cumulative play at the end of each round, with the columns `PLAY`.

    Returns:
        Columns threshold, method, seed and reached; round, trajectories and replies when the run
        reached the threshold, or at its end if it did not; and end, the trajectories at its end.
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
    """Kaplan-Meier estimate: times of steps, and share of runs still below the threshold.

    The first time is 0, with share 1.
    """
    estimate = SurvfuncRight(np.asarray(times, float), np.asarray(reached, int))
    return np.r_[0.0, estimate.surv_times], np.r_[1.0, estimate.surv_prob]


def restricted_mean(times: Sequence[float], reached: Sequence[bool], horizon: float) -> float:
    """Area under `curve` up to the horizon: mean time to the threshold, at most the horizon."""
    steps, shares = curve(times, reached)
    inside = steps < horizon
    widths = np.diff(np.r_[steps[inside], horizon])
    return float(widths @ shares[inside])


def summary(first: pd.DataFrame, reference: str, level: float) -> pd.DataFrame:
    """One row per threshold and arm; `first` is the table of `first_rounds`.

    The horizon of the restricted mean is the end of the run with the fewest trajectories. `reached`
    is the number of runs that reach the threshold by then, and the mean's interval is clipped
    there. The difference from the reference is paired by seed. Intervals are t intervals over
    seeds, NaN with one seed or if all values are equal. The median is NaN unless more than half of
    the runs reach the threshold by the horizon.
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
    """Share of each arm's runs that reached each threshold, by trajectories; from 0 to the horizon.

    One row per step of `curve`, and a last row at the horizon.
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
    """Number of trajectories reached by all runs; `first` is from `first_rounds`."""
    return float(first["end"].min())


def _ends(values: pd.Series, level: float, prefix: str) -> dict[str, float]:
    if values.nunique() < 2:  # times are rounded up to ends of rounds, so equal ones hide spread
        lower = upper = np.nan
    else:
        estimate = seed_interval(values.to_numpy(), level)
        lower, upper = estimate.lower, estimate.upper
    return {f"{prefix}lower": float(lower), f"{prefix}upper": float(upper)}
