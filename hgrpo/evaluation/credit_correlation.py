"""How similar the credit of several methods is, and whether a method's credit adds up.

The credit of a method is one float64 array over the turns of all trajectories, one trajectory after
another. NaN marks trajectories that the method was not asked about. `lengths`, int [N], are the
numbers of turns of the N trajectories.
"""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import rankdata, spearmanr

# Credits tie if they differ by less than this share of the largest, because of rounding.
_TIE = 1e-9


def correlations(credits: Mapping[str, np.ndarray], lengths: np.ndarray) -> pd.DataFrame:
    """Spearman's rank correlation of every two methods, over turns that both credited.

    Returns:
        One row per pair, in the order of `credits`:
        - pooled: correlation over all turns; `turns` is their number
        - within: mean of the correlations inside single trajectories, over those in which both
          methods' credit varies; `trajectories` is their number
        NaN where a correlation is not defined.
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
    """Ranks of the turns inside their trajectory, centred and scaled to unit length, [turns].

    The products of two methods' scores in a trajectory sum to Spearman's correlation there. Scores
    are 0 in a trajectory whose credit does not vary, and NaN where credit is not known.
    """
    if not len(credit):
        return np.zeros(0)
    parts = np.split(credit, np.cumsum(lengths)[:-1])
    return np.concatenate([_unit(rankdata(part)) for part in parts if len(part)])


def within(first: np.ndarray, second: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Spearman's correlation inside each trajectory in which both vary, from `rank_scores`.

    The sums of products are fast; scipy's function would have to be called a million times.
    """
    lengths = lengths[lengths > 0]
    if not len(lengths):
        return np.zeros(0)
    starts = np.cumsum(lengths) - lengths
    both = [np.add.reduceat(scores**2, starts) > 0.5 for scores in (first, second)]
    return np.add.reduceat(first * second, starts)[both[0] & both[1]]


def check_row(credit: np.ndarray, expected: np.ndarray | None, lengths: np.ndarray) -> dict:
    """Count a method's credit, and compare its sum in each trajectory with the expected sum.

    Args:
        expected: float64 [N], what each trajectory's credit should sum to; None if nothing is
            known about the sums.

    Returns:
        - trajectories, turns: numbers of trajectories and of turns that got credit
        - nonzero_share: share of these turns with credit other than 0
        - mean_abs_credit: mean absolute credit over these turns
        - largest_sum_error: largest |sum - expected| over trajectories; NaN without `expected`
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    known = np.isfinite(credit)
    sums = np.bincount(owner[known], credit[known], minlength=len(lengths))
    asked = np.unique(owner[known])
    given = credit[known]
    return {
        "trajectories": len(asked),
        "turns": int(known.sum()),
        "nonzero_share": float(np.mean(given != 0)) if len(given) else np.nan,
        "mean_abs_credit": float(np.abs(given).mean()) if len(given) else np.nan,
        "largest_sum_error": np.nan
        if expected is None or not len(asked)
        else float(np.abs(sums - expected)[asked].max()),
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
