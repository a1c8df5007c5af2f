"""Errors of a method by turn number and by kind of action."""

import numpy as np

from hgrpo.evaluation.truth.measured import MeasuredTruth
from hgrpo.evaluation.truth.resampling import ratio, sums_by_group


def sign_hits(advantage: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """1 where both have the same sign, 0.5 where the advantage is 0, else 0; [turns]."""
    return (1 + np.sign(advantage) * np.sign(truth)) / 2


def sign_accuracy(
    advantage: np.ndarray,
    truth: np.ndarray,
    clear: np.ndarray,
    owner: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """Mean of `sign_hits` over the clear turns of each resample, float64 [R]; NaN without any.

    Args:
        advantage, truth: float64 [turns].
        clear: bool [turns], whether the truth of each turn is clear.
        owner: int [turns], each turn's group.
        weights: float64 [R, groups] from `resamples`.
    """
    columns = np.array([clear * sign_hits(advantage, truth), clear], dtype=np.float64)
    hits, turns = (weights @ sums_by_group(columns, owner, weights.shape[1])).T
    return ratio(hits, turns)


def best_scale(advantage: np.ndarray, truth: np.ndarray) -> float:
    """The factor >= 0 that brings advantages nearest to the truth in mean square; 0 if none does.

    Noise in the truth does not change its expectation. Advantages have no unit, so errors are
    those of scaled advantages.
    """
    square = float(advantage @ advantage)
    return max(0.0, float(advantage @ truth) / square) if square else 0.0


def error_rows(advantage: np.ndarray, truth: MeasuredTruth) -> list[dict[str, object]]:
    """One row for each turn number, then one for each kind of action.

    Args:
        advantage: float64 [N]; NaN for turns that were not credited.

    Returns:
        Rows with `by` ("turn" or "action"), `key`, the number of `turns` and of `clear_turns`, the
        share of the clear turns whose sign is right (`sign_accuracy`, NaN without any), the mean
        true advantage `mean_truth`, and `mean_error`, the mean of the scaled advantage less the
        truth, both in units of return.
    """
    known = np.isfinite(advantage)
    truth, advantage = truth.of(known), advantage[known]
    scaled = best_scale(advantage, truth.advantage) * advantage
    hits = sign_hits(advantage, truth.advantage)
    rows = []
    for by, keys in (("turn", truth.turn + 1), ("action", truth.kind)):
        for key in sorted(set(keys.tolist())):
            part = keys == key
            sure = part & truth.clear
            rows.append(
                {
                    "by": by,
                    "key": key,
                    "turns": int(part.sum()),
                    "clear_turns": int(sure.sum()),
                    "sign_accuracy": float(hits[sure].mean()) if sure.any() else np.nan,
                    "mean_truth": float(truth.advantage[part].mean()),
                    "mean_error": float((scaled - truth.advantage)[part].mean()),
                }
            )
    return rows
