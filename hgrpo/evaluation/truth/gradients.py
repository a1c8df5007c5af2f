"""Measures the quality of a method's policy updates from the gradients of single groups.

g_k is a method's gradient from group k: the sum, over the group's turns, of the advantage times the
gradient of the reply's log-probability. t_k is the same sum with the true advantages. All
statistics are functions of inner products, given as matrices [G, G] with entries such as g_k . t_l.
Weights, float64 [R, G] from `resamples`, are the multiplicities of the groups.

`cosine` compares a method's update with the update from the exact true advantages of the same
groups. This comparison is precise, because the two updates use the same rollouts. `Expected`
compares a method's update with the true gradient, the expectation over all games and rollouts. Let
mu = E[g_k], nu = E[t_k] and v = E|g_k - mu|^2. Means over pairs of different groups are unbiased
estimates of inner products of mu and nu. With few groups, the estimate of |mu|^2 or |nu|^2 may be
negative. Ratios with such an estimate are NaN.
"""

from dataclasses import dataclass

import numpy as np

from hgrpo.evaluation.truth.resampling import ratio


def cosine(
    of_method: np.ndarray,
    with_truth: np.ndarray,
    halves: np.ndarray,
    weights: np.ndarray,
    groups: int = 1,
) -> np.ndarray:
    """Cosine between a method's update and the update from the true advantages, float64 [R].

    The norm of the true update is estimated from the inner product of two halves with independent
    noise. The result therefore estimates the cosine with the exact true update, and may exceed 1 by
    chance. Let c be the cosine for one group. If noise dominates, the update of an unbiased method
    requires about 1 / c^2 times as many groups as an equally good update from the truth.

    Args:
        of_method: [G, G], g_k . g_l.
        with_truth: [G, G], g_k . t_l.
        halves: [G, G], first half of t_k . second half of t_l.
        groups: number of groups per update.
    """
    parts = (of_method, with_truth, halves)
    length, along, true = (_of_sums(part, weights, groups) for part in parts)
    return ratio(along, np.sqrt(np.maximum(length, 0) * np.maximum(true, 0)))


@dataclass(frozen=True)
class Expected:
    """Moments of a method's gradient; every field is float64 [R].

    Attributes:
        signal: |mu|^2.
        along: mu . nu.
        truth: |nu|^2.
        variance: v, the variance of the gradient of one group.
    """

    signal: np.ndarray
    along: np.ndarray
    truth: np.ndarray
    variance: np.ndarray

    def cosine(self, groups: float = np.inf) -> np.ndarray:
        """Cosine of nu and an update from n groups: mu . nu / (|nu| sqrt(|mu|^2 + v / n))."""
        length = (self.signal + self.variance / groups) * np.maximum(self.truth, 0)
        return ratio(self.along, np.sqrt(np.maximum(length, 0)))

    def bias(self) -> np.ndarray:
        """|c mu - nu| / |nu|, where c is chosen so that the projection of c mu on nu is nu.

        Advantages have no unit, so c can be any scale. The bias is the tangent of the angle between
        mu and nu, or infinity if the cosine of this angle is not positive.
        """
        cosine = np.minimum(self.cosine(), 1.0)
        tangent = np.sqrt(np.maximum(ratio(np.ones_like(cosine), cosine**2) - 1, 0))
        return np.where(cosine <= 0, np.inf, tangent)

    def relative_variance(self, groups: float) -> np.ndarray:
        """Variance of an update from n groups, in units of |nu|^2: c^2 v / (n |nu|^2).

        c is defined in `bias`. The result is infinite if the bias is infinite.
        """
        along = np.maximum(self.along, 0) ** 2
        relative = ratio(np.maximum(self.truth, 0) * self.variance, groups * along)
        return np.where(self.along <= 0, np.inf, relative)

    def signal_to_noise(self, groups: float) -> np.ndarray:
        """Signal-to-noise ratio of an update from n groups: n |mu|^2 / v."""
        return groups * ratio(self.signal, self.variance)


def expected(
    of_method: np.ndarray, with_truth: np.ndarray, truth: np.ndarray, weights: np.ndarray
) -> Expected:
    """Estimate the moments from [G, G] matrices of g_k . g_l, g_k . t_l and t_k . t_l.

    If the entries of `of_method` are products of two estimates of the method's gradients with
    independent noise, the variance does not include this noise.
    """
    signal = _pairs(of_method, weights)
    pairs = (_pairs(products, weights) for products in (with_truth, truth))
    return Expected(signal, *pairs, _same(of_method, weights) - signal)


def _of_sums(products: np.ndarray, weights: np.ndarray, groups: int) -> np.ndarray:
    """Expected inner product of two sums over the same n = `groups` groups, divided by n, [R]."""
    same = _same(products, weights)
    return same + (groups - 1) * _pairs(products, weights) if groups > 1 else same


def _same(products: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return weights @ np.diag(products) / weights.sum(axis=1)


def _pairs(products: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted mean of products of different groups, [R]; NaN if only one group was drawn."""
    whole = np.einsum("rk,kl,rl->r", weights, products, weights, optimize=True)
    squares = weights**2
    number = weights.sum(axis=1) ** 2 - squares.sum(axis=1)
    return ratio(whole - squares @ np.diag(products), number)
