"""Number of trajectories until an arm reaches a score; runs that never do are censored.

All play counts, continuations too (`hgrpo.trajectories.log_row`). A run reaches a threshold in
the first round whose greedy test score is at least as high. What happens between two evaluations is
unknown, so times are ends of rounds. A run that does not reach it by the common horizon, the end of
the run that plays the fewest trajectories, is censored there. Kaplan and Meier's estimator and the
mean restricted to that horizon take this into account.
Sources: Kaplan and Meier 1958, "Nonparametric Estimation from Incomplete Observations"
(https://doi.org/10.1080/01621459.1958.10501452); Royston and Parmar 2013, "Restricted mean survival
time" (https://doi.org/10.1186/1471-2288-13-152).

There are no verdicts on times.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from statsmodels.duration.survfunc import SurvfuncRight

from hgrpo.evaluation.over_seeds import seed_interval

# Columns of a table of the play of runs up to the end of each round.
PLAY = ["method", "seed", "round", "trajectories", "replies"]
# Shares of the way from the supervised policy to the reference's last round.
SHARES = (0.25, 0.5, 0.75)


def derived(start: float, end: float) -> list[float]:
    """Thresholds at `SHARES` of the way from `start` to `end`, rounded to whole per cent.

    The reference's last round is the end, so no arm's result on the test panel chooses the
    thresholds that it is measured by. If the reference ends no higher than `start`, `start` is the
    only threshold.
    """
    if end <= start:
        return [round(start, 2)]
    return sorted({round(start + share * (end - start), 2) for share in SHARES})


def without_zero(thresholds: Sequence[float], scores: pd.Series) -> list[float]:
    """The thresholds without 0, which every run reaches at once unless some score is negative."""
    return [each for each in thresholds if each != 0 or (scores < 0).any()]


def first_rounds(
    runs: pd.DataFrame, thresholds: Sequence[float], column: str, play: pd.DataFrame
) -> pd.DataFrame:
    """One row per threshold and run: whether and when the run reached the threshold.

    Args:
        runs: a run's score by round, with the columns method, seed, round and `column`.
        play: play of each run up to the end of each round, with the columns `PLAY`.

    Returns:
        Columns threshold, method, seed, reached, round, trajectories and replies at which the run
        reached the threshold or ended without it, and end: the trajectories at its end.
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
    """Kaplan and Meier's estimate: times of steps, and the share of runs that have not got there.

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
    """One row per threshold and arm; `first` is what `first_rounds` returned.

    The horizon of the restricted mean is the end of the run that plays the fewest trajectories.
    `reached` counts the runs that reach the threshold by then, and the mean's interval ends there.
    The difference from the reference is paired by seed; intervals are t intervals over seeds, NaN
    with one seed, and where all values are equal. The median is NaN unless more than half of the
    runs reach the threshold by the horizon.
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

    One row per step of `curve`, and one at the horizon, where each line ends.
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
    """The trajectories until which all runs were followed; `first` is from `first_rounds`."""
    return float(first["end"].min())


def _ends(values: pd.Series, level: float, prefix: str) -> dict[str, float]:
    if values.nunique() < 2:  # times are ends of rounds, so equal ones say little about the spread
        lower = upper = np.nan
    else:
        estimate = seed_interval(values.to_numpy(), level)
        lower, upper = estimate.lower, estimate.upper
    return {f"{prefix}lower": float(lower), f"{prefix}upper": float(upper)}
