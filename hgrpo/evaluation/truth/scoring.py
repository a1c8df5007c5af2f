"""Measures the accuracy of credit and advantages: correlations, signs, cosines and errors."""

from collections.abc import Callable

import numpy as np

from hgrpo.evaluation.truth.gradients import Expected, cosine, expected
from hgrpo.evaluation.truth.measured import NO, YES, MeasuredTruth
from hgrpo.evaluation.truth.resampling import estimate, ratio, sums_by_group
from hgrpo.evaluation.truth.shuffled import (
    shuffled_pearson,
    shuffled_signs,
    shuffled_spread,
    trajectory_means,
)

# Numbers of groups per update in truth_gradients.csv.
GROUPS = (1, 2, 4, 8, 16, 32, 64, 128)


def pearson(
    credit: np.ndarray,
    truth: np.ndarray,
    halves: tuple[np.ndarray, np.ndarray],
    owner: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """Pearson correlation corrected for attenuation, on each resample, float64 [R].

        r = cov(credit, truth) / sqrt(var(credit) cov(first half, second half))

    Noise in the estimated truth reduces the plain correlation. The two halves of the continuations
    give estimates with independent noise, so their covariance estimates the variance of the truth
    without noise (Spearman 1904, "The Proof and Measurement of Association between Two Things",
    https://doi.org/10.2307/1412159). A corrected correlation may exceed 1 by chance. Noise in the
    credit is not corrected, because it is part of the credit.

    The result is NaN if the credit does not vary, or if the covariance is not positive.

    Args:
        credit, truth: float64 [turns].
        halves: estimates of the truth from each half of the continuations, float64 [turns] each.
        owner: int [turns], each turn's group.
        weights: float64 [R, groups] from `resamples`.
    """
    first, second = halves
    one = np.ones(len(credit))
    columns = [one, credit, truth, first, second]
    columns += [credit * truth, credit**2, first * second]
    sums = weights @ sums_by_group(np.array(columns), owner, weights.shape[1])
    n, c, t, a, b, ct, cc, ab = np.where(sums[:, :1] > 0, sums, np.nan).T
    shared = ct / n - c * t / n**2
    spread, true = cc / n - (c / n) ** 2, ab / n - a * b / n**2
    return ratio(shared, np.sqrt(np.maximum(_varies(spread, cc / n) * true, 0)))


def _varies(variance: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Return `variance`, or 0 where it is negligible relative to the mean square `square`."""
    return np.where(variance > 1e-12 * square, variance, 0.0)


def sign_hits(advantage: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """1 if advantage and truth have the same sign, 0.5 if the advantage is 0, else 0; [turns]."""
    return (1 + np.sign(advantage) * np.sign(truth)) / 2


def sign_accuracy(
    advantage: np.ndarray,
    truth: np.ndarray,
    clear: np.ndarray,
    owner: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """Mean of `sign_hits` over each resample's clear turns, float64 [R]; NaN without clear turns.

    Args:
        advantage, truth: float64 [turns].
        clear: bool [turns], whether the sign of the true advantage is clear.
        owner: int [turns], each turn's group.
        weights: float64 [R, groups] from `resamples`.
    """
    columns = np.array([clear * sign_hits(advantage, truth), clear], dtype=np.float64)
    hits, turns = (weights @ sums_by_group(columns, owner, weights.shape[1])).T
    return ratio(hits, turns)


def score(credit: np.ndarray, advantage: np.ndarray, truth: MeasuredTruth) -> dict[str, object]:
    """Accuracy of a method's credit and advantages.

    Args:
        credit, advantage: float64 [N]; NaN for all turns of uncredited groups.

    Returns:
        groups, turns, clear_turns: sample sizes.
        credit_pearson, advantage_pearson: correlations with the truth, corrected for its noise.
        within_pearson: like `advantage_pearson`, after subtracting each trajectory's mean from
            advantage and truth, so that only turns of the same trajectory are compared.
        beats_shuffled: "yes" if the interval of `within_pearson` is above 0, which is the value for
            the shuffled truth. "" if there is no interval, e.g. because the truth does not vary
            significantly within trajectories. "no" otherwise, and always if advantages are constant
            within trajectories.
        sign_accuracy: share of the clear turns whose advantage has the sign of the truth.
        cosine: cosine between a group's update and the update from its exact true advantages.
        Except for sample sizes, each number has columns `_lower` and `_upper` with a 95 % interval
        over groups, NaN if nothing varies or with fewer than `resampling.FEWEST` groups.
    """
    known = np.isfinite(credit) & np.isfinite(advantage)
    truth, credit, advantage = truth.of(known), _scaled(credit[known]), _scaled(advantage[known])
    row: dict[str, object] = {"groups": truth.groups, "turns": len(credit)}
    row["clear_turns"] = int(truth.clear.sum())
    row |= _columns("credit_pearson", _pearson(credit, truth))
    row |= _columns("advantage_pearson", _pearson(advantage, truth))
    centred = truth.centred(advantage)
    inside = _pearson(centred, truth.within)
    row |= _columns("within_pearson", inside)
    row["beats_shuffled"] = _beats(inside) if centred.any() else NO
    signs = sign_accuracy(advantage, truth.advantage, truth.clear, truth.owner, truth.weights)
    row |= _columns("sign_accuracy", signs)
    return row | _columns("cosine", cosine(*_products(advantage, truth), truth.weights))


def shuffled_row(truth: MeasuredTruth) -> dict[str, object]:
    """The row of `score` for the truth shuffled over the turns of each trajectory."""
    place = (truth.lengths, truth.owner, truth.weights)
    row: dict[str, object] = {"groups": truth.groups, "turns": len(truth.advantage)}
    row["clear_turns"] = int(truth.clear.sum())
    correlation = _columns("", shuffled_pearson(truth.halves, *place))
    for name in ("credit_pearson", "advantage_pearson"):
        row |= {name + end: value for end, value in correlation.items()}
    row |= _columns("within_pearson", np.zeros(len(truth.weights)))
    row["beats_shuffled"] = NO
    row |= _columns("sign_accuracy", shuffled_signs(truth.advantage, truth.clear, *place))
    return row | _columns("cosine", _shuffled_cosine(truth))


def gradient_rows(advantage: np.ndarray, truth: MeasuredTruth) -> list[dict[str, float]]:
    """Quality of a method's updates, one row per update size in `GROUPS`.

    `of_groups` is the sample size, and `groups` the number of groups per update.
    `cosine_same_groups` is the cosine with the update from the exact truth on the same groups. For
    `cosine_true`, `bias`, `variance` and `signal_to_noise`, see `gradients.Expected`.
    """
    known = np.isfinite(advantage)
    truth = truth.of(known)
    products, along, halves = _products(advantage[known], truth)
    true = update_sketches(truth.advantage, truth)
    moments = expected(products, along, true @ true.T, truth.weights)
    return _by_groups(truth, moments, lambda n: cosine(products, along, halves, truth.weights, n))


def true_gradient_rows(truth: MeasuredTruth) -> list[dict[str, float]]:
    """The rows of `gradient_rows` for the true advantages, corrected for estimation noise."""
    first, second = (update_sketches(half, truth) for half in truth.halves)
    products = (first @ second.T + second @ first.T) / 2
    moments = expected(products, products, products, truth.weights)
    return _by_groups(truth, moments, lambda n: np.ones(len(truth.weights)))


def best_scale(advantage: np.ndarray, truth: np.ndarray) -> float:
    """Factor f >= 0 that minimises |f * advantage - truth|^2; noise in `truth` does not bias f."""
    square = float(advantage @ advantage)
    return max(0.0, float(advantage @ truth) / square) if square else 0.0


def error_rows(advantage: np.ndarray, truth: MeasuredTruth) -> list[dict[str, object]]:
    """Errors of advantages, one row per turn number, then one row per kind of action.

    Args:
        advantage: float64 [N]; NaN for turns without credit.

    Returns:
        Columns `by` ("turn" or "action"), `key` (the turn number or kind of action), the numbers of
        `turns` and `clear_turns`, `sign_accuracy` (see `score`; NaN without clear turns),
        `mean_truth` (mean true advantage) and `mean_error` (mean of scaled advantage minus truth).
        Because advantages have no unit, they are scaled by `best_scale`. `mean_truth` and
        `mean_error` are in units of return.
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


def update_sketches(advantage: np.ndarray, truth: MeasuredTruth) -> np.ndarray:
    """Sketch of each group's gradient: the sum over turns of advantage times the turn's sketch.

    Args:
        advantage: float64 [N].

    Returns:
        float64 [G, size].
    """
    parts = (truth.owner == group for group in range(truth.groups))
    return np.array([advantage[part] @ truth.sketches[part] for part in parts])


def _by_groups(
    truth: MeasuredTruth, moments: Expected, same_groups: Callable
) -> list[dict[str, float]]:
    rows = []
    for groups in GROUPS:
        row = {"of_groups": truth.groups, "groups": groups}
        for name, values in (
            ("cosine_same_groups", same_groups(groups)),
            ("cosine_true", moments.cosine(groups)),
            ("bias", moments.bias()),
            ("variance", moments.relative_variance(groups)),
            ("signal_to_noise", moments.signal_to_noise(groups)),
        ):
            row |= _columns(name, values)
        rows.append(row)
    return rows


def _columns(name: str, values: np.ndarray) -> dict[str, float]:
    return dict(zip((name, f"{name}_lower", f"{name}_upper"), estimate(values), strict=True))


def _scaled(values: np.ndarray) -> np.ndarray:
    """Values scaled into (-1, 1], because squares of huge values would overflow.

    The factor is a power of two, so the scaling is exact.
    """
    largest = np.abs(values).max(initial=0.0)
    return np.ldexp(values, -int(np.frexp(largest)[1]))


def _pearson(values: np.ndarray, truth: MeasuredTruth) -> np.ndarray:
    # Subtract the mean, because rounding errors of large values would hide small differences.
    values = values - values.mean() if len(values) else values
    return pearson(values, truth.advantage, truth.halves, truth.owner, truth.weights)


def _beats(inside: np.ndarray) -> str:
    _, lower, _ = estimate(inside)
    if np.isnan(lower):
        return ""
    return YES if lower > 0 else NO


def _products(
    advantage: np.ndarray, truth: MeasuredTruth
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    of_method, true = (update_sketches(values, truth) for values in (advantage, truth.advantage))
    first, second = (update_sketches(half, truth) for half in truth.halves)
    return of_method @ of_method.T, of_method @ true.T, first @ second.T


def _shuffled_cosine(truth: MeasuredTruth) -> np.ndarray:
    """Cosine for the shuffled truth. All products combine both halves, to avoid bias from noise."""
    first, second = (update_sketches(half, truth) for half in truth.halves)
    means = (trajectory_means(half, truth.lengths) for half in truth.halves)
    dealt_first, dealt_second = (update_sketches(mean, truth) for mean in means)
    spread = shuffled_spread(truth.halves, truth.sketches, truth.lengths)
    starts = np.cumsum(truth.lengths) - truth.lengths
    extra = np.bincount(truth.owner[starts], spread, minlength=truth.groups)
    dealt = dealt_first @ dealt_second.T + np.diag(extra)
    return cosine(dealt, dealt_first @ second.T, first @ second.T, truth.weights)
