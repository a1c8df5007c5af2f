"""Where a method errs: by the number of the turn and by the kind of its action."""

import numpy as np

from hgrpo.evaluation.truth.measured import MeasuredTruth
from hgrpo.evaluation.truth.signs import sign_hits


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
