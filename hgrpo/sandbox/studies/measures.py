"""Computes one number per seed from the rows of a run, e.g. a mean or a time to a threshold."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.errors import UserError, did_you_mean
from hgrpo.sandbox.studies.study import Metric


@dataclass(frozen=True)
class Measured:
    """The value of a metric for each seed of an arm, [S].

    If the metric is a time to a threshold, `reached` [S] is True for seeds that reached the
    threshold. For other seeds, `values` contains the time of the seed's last evaluation, or inf if
    the training of the seed stopped early, so that the seed never reaches the threshold. `end` is
    the last time of any seed. For all other metrics, `reached` is True for every seed.
    """

    values: np.ndarray
    reached: np.ndarray
    end: float

    def until(self, horizon: float) -> np.ndarray:
        """Times restricted to a horizon; other metrics unchanged."""
        return np.minimum(self.values, horizon)


def measure(rows: pd.DataFrame, metric: Metric, arm: str) -> Measured:
    """Compute the metric for every seed of an arm.

    Missing values are ignored, so that the last value of a sparse column is its last logged value.

    Args:
        rows: rows with columns step and seed, in step order.
        arm: the arm's label, for messages.

    Raises:
        UserError: a column is missing, or a seed has no value in it.
    """
    for column in metric.columns:
        if column not in rows:
            raise UserError(
                f"metric: arm {arm!r} has no column "
                f"{column!r}{did_you_mean(column, map(str, rows.columns))}"
            )
    each, end = [], -np.inf
    for seed, log in rows.groupby("seed", sort=False):
        log = _read(log, metric)
        if log.empty:
            raise UserError(f"metric: {metric.column}: seed {seed} of arm {arm!r} logs no value")
        each.append(_one(log, metric))
        if metric.at == "time":
            end = max(end, float(log[metric.clock].iloc[-1]))
    values, reached = zip(*each, strict=True)
    return Measured(np.array(values, float), np.array(reached), end)


def horizon(*arms: Measured) -> float:
    """Latest time at which it is known, for every seed, whether the threshold has been reached.

    The result is inf if all seeds have reached the threshold.
    """
    missing = [value for arm in arms for value in arm.values[~arm.reached]]
    return min(*missing, max(arm.end for arm in arms)) if missing else np.inf


def _read(rows: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    rows = rows[rows[metric.column].notna()]
    return rows if metric.until is None else rows[rows[metric.clock] <= metric.until]


def _one(rows: pd.DataFrame, metric: Metric) -> tuple[float, bool]:
    column = rows[metric.column]
    if metric.at in ("first", "end"):
        return float(column.iloc[0 if metric.at == "first" else -1]), True
    if metric.at == "mean":
        return float(column.mean()), True
    if metric.at == "slope":
        return float(stats.linregress(np.log(rows[metric.clock]), np.log(column)).slope), True
    there = column <= metric.below if metric.below is not None else column >= metric.above
    if there.any():
        return float(rows[metric.clock].iloc[int(np.argmax(there))]), True
    stopped = "stopped_at" in rows and rows["stopped_at"].iloc[-1] >= 0
    return np.inf if stopped else float(rows[metric.clock].iloc[-1]), False
