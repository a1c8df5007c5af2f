"""How exact a measured truth is, as a few numbers."""

import numpy as np
import pyarrow as pa

# A turn's truth is clear if it is further from 0 than this many standard errors.
CLEAR = 3.0


def clear(advantage: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Whether it is clear that each turn helped or harmed: bool [turns], |A| > `CLEAR` errors.

    Among many turns, a few that are worth nothing are clear by chance.
    """
    return np.abs(advantage) > CLEAR * error


def true_variance(first: np.ndarray, second: np.ndarray) -> float:
    """Variance of the true A over turns, from estimates by two halves of the continuations.

    The halves' errors are independent, so their covariance has no noise in it. It may be below 0 by
    chance, if little of what varies is truth.
    """
    return float(np.mean((first - first.mean()) * (second - second.mean())))


def reliability(advantage: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Share of the estimates' variance over turns that is truth, up to 1; NaN if they are equal."""
    spread = float(np.var(advantage))
    return min(1.0, true_variance(first, second) / spread) if spread else float("nan")


def quality(table: pa.Table) -> dict[str, float]:
    """Numbers about a truth table for a summary.

    Returns:
        turns: rows of the table.
        continuations: episodes that were played on, in all.
        mean_start_value: mean V before first turns.
        mean_standard_error: mean standard error of A.
        reliability: see the function of that name.
        clear_share: share of turns whose truth is clear.
    """
    names = ("advantage", "advantage_se", "advantage_first", "advantage_second")
    advantage, error, first, second = (table[name].to_numpy() for name in names)
    starts = table["value_before"].to_numpy()[table["turn"].to_numpy() == 0]
    return {
        "turns": len(table),
        "continuations": int(table["continuations"].to_numpy().sum()),
        "mean_start_value": float(starts.mean()),
        "mean_standard_error": float(error.mean()),
        "reliability": reliability(advantage, first, second),
        "clear_share": float(clear(advantage, error).mean()),
    }
