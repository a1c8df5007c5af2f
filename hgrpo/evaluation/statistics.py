"""Uncertainty of success rates and of paired differences, over seeds and tasks.

Every seed plays the same panel, so outcomes form a crossed table [seeds, tasks] and have two
sources of luck: which seed was drawn and which tasks are on the panel. The classic answer is a
two-level bootstrap (resample seeds, resample tasks). With one to five seeds its percentiles are
too narrow, because a resample of three seeds can never show more spread than those three. The
intervals here keep the two levels but use their unbiased variances and a t quantile:

    se^2 = s^2(seed means) / S + s^2(task means) / n,
    df   = se^4 / (v_seeds^2 / (S - 1) + v_tasks^2 / (n - 1))         (Satterthwaite, 1946)

where v_seeds and v_tasks are the two terms of the sum. Both carry the residual noise, so se^2
errs upwards. `bootstrap_interval` gives the plain two-level percentiles beside it. The coverage
of both is measured in tests/unit/evaluation/test_statistics.py.

With one seed only tasks can be resampled: the interval then describes this one training run and
says nothing about another seed.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

LEVEL = 0.95
ALPHA = 0.05
POWER = 0.8


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval: a success rate, or a paired difference of success rates.

    All of `mean`, `lower`, `upper` and `standard_error` are fractions, not percent.
    """

    mean: float
    lower: float
    upper: float
    standard_error: float
    degrees_of_freedom: float
    n_seeds: int
    n_tasks: int

    @property
    def p_value(self) -> float:
        """Two-sided p-value of the hypothesis that the true mean is zero."""
        t_value = abs(self.mean) / self.standard_error
        return float(2 * stats.t.sf(t_value, self.degrees_of_freedom))


@dataclass(frozen=True)
class McNemar:
    """Discordant tasks of one seed and the exact two-sided p-value."""

    only_method: int
    only_baseline: int
    p_value: float


def two_level_variance(values: np.ndarray) -> tuple[float, float]:
    """Standard error of the mean of a crossed table [seeds, tasks], and its degrees of freedom.

    Raises:
        ValueError: not a two-dimensional table with at least one seed and two tasks.
    """
    values = _table(values)
    seeds, tasks = values.shape
    from_tasks = values.mean(axis=0).var(ddof=1) / tasks
    if seeds == 1:
        return float(np.sqrt(from_tasks)), float(tasks - 1)
    from_seeds = values.mean(axis=1).var(ddof=1) / seeds
    variance = from_seeds + from_tasks
    if variance == 0:
        return 0.0, float(seeds - 1)
    spread = from_seeds**2 / (seeds - 1) + from_tasks**2 / (tasks - 1)
    return float(np.sqrt(variance)), float(variance**2 / spread)


def difference_interval(method: np.ndarray, baseline: np.ndarray, level: float = LEVEL) -> Estimate:
    """Paired difference of success rates, method - baseline, over seeds and tasks.

    Args:
        method, baseline: success tables [seeds, tasks] with the same seeds and tasks in the
            same order.

    The standard error is computed with two pseudo-tasks added, one that every seed of the method
    alone wins and one that every seed of the baseline alone wins (Bonett and Price, 2012), so it
    is never zero and few discordant pairs never look certain. The mean is the raw one.
    """
    method, baseline = _table(method), _table(baseline)
    if method.shape != baseline.shape:
        raise ValueError(f"tables differ in shape: {method.shape} and {baseline.shape}")
    difference = method - baseline
    seeds, tasks = difference.shape
    pseudo = np.tile([1.0, -1.0], (seeds, 1))
    error, freedom = two_level_variance(np.hstack([difference, pseudo]))
    half = error * stats.t.ppf((1 + level) / 2, freedom)
    mean = float(difference.mean())
    return Estimate(
        mean,
        max(-1.0, mean - half),
        min(1.0, mean + half),
        error,
        freedom,
        seeds,
        tasks,
    )


def rate_interval(success: np.ndarray, level: float = LEVEL) -> Estimate:
    """Success rate over seeds and tasks, with an interval that stays inside [0, 1].

    One seed: Wilson's interval over the tasks. More: Wilson's interval at the effective sample
    size p (1 - p) / se^2 with a t quantile in place of the normal one, as survey statisticians
    do for clustered samples (Korn and Graubard, 1998). `se` is computed with one solved and one
    failed pseudo-task, so a rate of 0 or 1 keeps a width.
    """
    success = _table(success)
    seeds, tasks = success.shape
    pseudo = np.tile([1.0, 0.0], (seeds, 1))
    error, freedom = two_level_variance(np.hstack([success, pseudo]))
    mean = float(success.mean())
    if seeds == 1:
        lower, upper = wilson_interval(success.sum(), tasks, 1 - level)
    else:
        shrunk = (success.mean(axis=0).sum() + 1) / (tasks + 2)
        effective = shrunk * (1 - shrunk) / error**2
        quantile = stats.t.ppf((1 + level) / 2, freedom)
        # Tails, not levels: at two seeds the tail may be 1e-37, and 1 less that is 1. At high
        # levels it is less than the smallest float.
        tails = max(2 * stats.norm.sf(quantile), 1e-300)
        lower, upper = wilson_interval(mean * effective, effective, tails)
    return Estimate(mean, min(lower, mean), max(upper, mean), error, freedom, seeds, tasks)


def mean_interval(values: np.ndarray, level: float = LEVEL) -> Estimate:
    """Mean of a crossed table [seeds, tasks] of any numbers, and its t interval.

    For returns and their paired differences, which are not counts: no pseudo-tasks, no bounds.
    """
    values = _table(values)
    error, freedom = two_level_variance(values)
    mean = float(values.mean())
    half = error * stats.t.ppf((1 + level) / 2, freedom)
    return Estimate(mean, mean - half, mean + half, error, freedom, *values.shape)


def wilson_interval(successes: float, trials: float, tails: float = ALPHA) -> tuple[float, float]:
    """Wilson's score interval of a proportion; counts may be effective, not whole, numbers.

    Args:
        tails: the probability left out on both sides together.
    """
    lower, upper = proportion_confint(successes, trials, alpha=tails, method="wilson")
    return max(0.0, float(lower)), min(1.0, float(upper))


def bootstrap_means(
    values: np.ndarray, rng: np.random.Generator, replicates: int = 2000
) -> np.ndarray:
    """Two-level bootstrap means [replicates] of a crossed table [seeds, tasks].

    Seeds and tasks are resampled independently; a resampled task is the same task for every
    seed, because the panel is shared. With one seed only tasks are resampled.
    """
    values = _table(values)
    seeds, tasks = values.shape
    seed_weights = rng.multinomial(seeds, np.full(seeds, 1 / seeds), replicates) / seeds
    task_weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), replicates) / tasks
    return np.einsum("bt,bt->b", seed_weights @ values, task_weights)


def bootstrap_interval(
    values: np.ndarray,
    rng: np.random.Generator,
    replicates: int = 2000,
    level: float = LEVEL,
) -> tuple[float, float]:
    """Plain percentile interval of the two-level bootstrap: too narrow when seeds are few."""
    means = bootstrap_means(values, rng, replicates)
    lower, upper = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def mcnemar(method: np.ndarray, baseline: np.ndarray) -> McNemar:
    """Exact McNemar test of one seed.

    Args:
        method, baseline: successes [tasks] on the same tasks in the same order.
    """
    method = np.asarray(method, dtype=bool)
    baseline = np.asarray(baseline, dtype=bool)
    if method.shape != baseline.shape or method.ndim != 1:
        raise ValueError(f"two equal vectors expected: {method.shape} and {baseline.shape}")
    only_method = int(np.sum(method & ~baseline))
    only_baseline = int(np.sum(~method & baseline))
    both, neither = int(np.sum(method & baseline)), int(np.sum(~method & ~baseline))
    table = [[both, only_method], [only_baseline, neither]]
    p_value = float(statsmodels_mcnemar(table, exact=True).pvalue)
    return McNemar(only_method, only_baseline, min(1.0, p_value))


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given."""
    if not p_values:
        return []
    return [float(p) for p in multipletests(p_values, method="holm")[1]]


def probability_of_improvement(method: np.ndarray, baseline: np.ndarray) -> float | None:
    """Share of pairs (run of the method, run of the baseline) in which the method's is higher.

    Mann and Whitney's statistic over the success rates of runs, ties counting half, as in
    Agarwal et al. (2021), with the whole panel as the score. None with a single run each, where
    it could only be 0, 1/2 or 1.

    Args:
        method, baseline: success tables [seeds, tasks].
    """
    method, baseline = _table(method), _table(baseline)
    pairs = method.shape[0] * baseline.shape[0]
    if pairs == 1:
        return None
    # Sums, not means: equal counts must tie exactly.
    statistic = stats.mannwhitneyu(
        method.sum(axis=1), baseline.sum(axis=1), method="asymptotic"
    ).statistic
    return float(statistic / pairs)


def minimum_detectable_effect(
    estimate: Estimate, family: int = 1, power: float = POWER, level: float = LEVEL
) -> float:
    """Smallest true difference that a repeat of this comparison would call with that power.

    (t_{1 - alpha/(2m)} + t_{power}) * se, after Bloom (1995), at the observed discordance between
    the two methods and the observed spread between seeds; alpha / m is the first step of Holm's
    correction over m comparisons, which the only difference in a family has to pass. A fraction.

    Args:
        family: comparisons that are corrected together, m.
    """
    freedom = estimate.degrees_of_freedom
    tail = (1 - level) / 2 / family
    multiple = stats.t.isf(tail, freedom) + stats.t.ppf(power, freedom)
    return float(multiple * estimate.standard_error)


def verdict(mean: float, adjusted_p: float, n_seeds: int, alpha: float = ALPHA) -> str:
    """`better`, `worse` or `inconclusive`, from the Holm-adjusted p-value of a difference.

    `one seed` where there is but one: what another would give is not in its p-value at all, and
    methods are compared, not runs.
    """
    if n_seeds == 1:
        return "one seed"
    if adjusted_p >= alpha or mean == 0:
        return "inconclusive"
    return "better" if mean > 0 else "worse"


def _table(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 2:
        raise ValueError(f"a table [seeds, tasks >= 2] is expected, not shape {values.shape}")
    return values
