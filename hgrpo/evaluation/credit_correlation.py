"""Computes rank correlations between methods' credit, and checks the sums of each method's credit.

The credit of a method is a float64 array over the concatenated turns of N trajectories. `lengths`,
int [N], contains the number of turns of each trajectory. If a method assigned no credit to a
trajectory, the credit of all turns in the trajectory is NaN.
"""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import rankdata, spearmanr

# Credit is rounded to multiples of this fraction of the largest absolute credit, so that values
# that differ only by floating-point error are tied.
_TIE = 1e-9


def correlations(credits: Mapping[str, np.ndarray], lengths: np.ndarray) -> pd.DataFrame:
    """Compute Spearman's rank correlation between the credit of every pair of methods.

    Returns:
        One row per pair, in the order of `credits`:
        - pooled: the correlation over all turns that both methods credit
        - turns: the number of turns that both methods credit
        - within: the correlation within a trajectory, averaged over the trajectories in which
          neither method's credit is constant
        - trajectories: the number of trajectories over which `within` is averaged
        An undefined correlation is NaN.
    """
    tied = {name: _with_ties(credit) for name, credit in credits.items()}
    scores = {name: rank_scores(credit, lengths) for name, credit in tied.items()}
    rows = []
    for a, b in combinations(credits, 2):
        known = np.isfinite(tied[a]) & np.isfinite(tied[b])
        inside = within(scores[a], scores[b], lengths)
        rows.append(
            {
                "method_a": a,
                "method_b": b,
                "pooled": _spearman(tied[a][known], tied[b][known]),
                "turns": int(known.sum()),
                "within": float(inside.mean()) if len(inside) else np.nan,
                "trajectories": len(inside),
            }
        )
    columns = ["method_a", "method_b", "pooled", "turns", "within", "trajectories"]
    return pd.DataFrame(rows, columns=columns)


def rank_scores(credit: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Ranks of turns within each trajectory, centred and scaled to unit length, [turns].

    Within a trajectory, the dot product of two methods' scaled ranks is their Spearman correlation.
    Scaled ranks are 0 in trajectories with constant credit, and NaN in those with NaN credit.
    """
    if not len(credit):
        return np.zeros(0)
    parts = np.split(credit, np.cumsum(lengths)[:-1])
    return np.concatenate([_unit(rankdata(part)) for part in parts if len(part)])


def within(first: np.ndarray, second: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Spearman's correlation within each trajectory in which both methods' credit varies.

    `first` and `second` are results of `rank_scores`. Dot products of these scores are much faster
    than one call of scipy's function per trajectory.
    """
    lengths = lengths[lengths > 0]
    if not len(lengths):
        return np.zeros(0)
    starts = np.cumsum(lengths) - lengths
    both = [np.add.reduceat(scores**2, starts) > 0.5 for scores in (first, second)]
    return np.add.reduceat(first * second, starts)[both[0] & both[1]]


def check_row(credit: np.ndarray, expected: np.ndarray | None, lengths: np.ndarray) -> dict:
    """Summarise a method's credit, and compare each trajectory's sum with its expected value.

    Args:
        expected: float64 [N], expected sum of each trajectory's credit; None if unknown.

    Returns:
        - trajectories, turns: numbers of credited trajectories and turns
        - nonzero_share: share of credited turns with nonzero credit; NaN if no turn is credited
        - mean_abs_credit: mean absolute credit of credited turns; NaN if no turn is credited
        - largest_sum_error: largest |sum - expected| of a credited trajectory; NaN if there is no
          such trajectory or `expected` is None
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    known = np.isfinite(credit)
    sums = np.bincount(owner[known], credit[known], minlength=len(lengths))
    credited = np.unique(owner[known])
    values = credit[known]
    return {
        "trajectories": len(credited),
        "turns": int(known.sum()),
        "nonzero_share": float(np.mean(values != 0)) if len(values) else np.nan,
        "mean_abs_credit": float(np.abs(values).mean()) if len(values) else np.nan,
        "largest_sum_error": np.nan
        if expected is None or not len(credited)
        else float(np.abs(sums - expected)[credited].max()),
    }


def _with_ties(credit: np.ndarray) -> np.ndarray:
    largest = np.abs(credit[np.isfinite(credit)]).max(initial=0.0)
    return credit if largest == 0 else np.round(credit / (largest * _TIE)) * _TIE


def _unit(ranks: np.ndarray) -> np.ndarray:
    centred = ranks - ranks.mean()
    length = np.sqrt((centred**2).sum())
    return centred if length == 0 else centred / length


def _spearman(first: np.ndarray, second: np.ndarray) -> float:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return np.nan
    return float(spearmanr(first, second).statistic)
