"""Estimates the uncertainty of success rates over seeds and tasks, and derives verdicts.

All seeds play the same panel, so outcomes form a crossed table [seeds, tasks]. Both the seeds and
the tasks are random samples. A two-level bootstrap, the usual method, resamples both. With one to
five seeds, its intervals are too narrow, because resampling S seeds shrinks the variance of their
mean by the factor (S - 1) / S. The interval of a single arm's rate also takes both into account,
but uses unbiased variances and a t quantile:

    se^2 = s^2(seed means) / S + s^2(task means) / n,
    df   = se^4 / (v_seeds^2 / (S - 1) + v_tasks^2 / (n - 1)),

where v_seeds and v_tasks are the two terms of se^2. The degrees of freedom are from Satterthwaite
1946, "An Approximate Distribution of Estimates of Variance Components"
(https://doi.org/10.2307/3002019). This interval has its nominal coverage, but the tails of its t
distribution are too thin for verdicts on many arms. See `hgrpo.evaluation.differences` for
differences between arms and verdicts.

With one seed, only tasks vary. An interval would then describe one run instead of the method, so
tables omit it (`Estimate.columns`).

For values that vary over seeds only, see `hgrpo.evaluation.over_seeds`.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

LEVEL = 0.95
ALPHA = 0.05
# With fewer seeds, every analysis in `benchmarks/verdicts.py` either makes too many errors in some
# scenario or does not detect differences of typical size (docs/statistics.md).
FEWEST_SEEDS = 5
# Verdicts of a significant difference.
DECIDED = ("better", "worse")
# These columns are NaN with one seed, because numbers would make a single run look conclusive.
_OF_TASKS_ALONE = ("standard_error", "degrees_of_freedom")
# These columns are NaN with too few seeds, because numbers would make the result look conclusive.
_OF_VERDICTS = ("p_value", "p_holm")


@dataclass(frozen=True)
class Estimate:
    """The mean of success rates, returns or paired differences, with its interval.

    `mean`, `lower`, `upper` and `standard_error` are fractions, not per cent.
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
        """Two-sided p-value for a mean of 0. If the standard error is 0, the p-value is 0 or 1."""
        if self.standard_error == 0:
            return float(self.mean == 0)
        t_value = abs(self.mean) / self.standard_error
        return float(2 * stats.t.sf(t_value, self.degrees_of_freedom))

    def columns(self, mean: str, prefix: str = "") -> dict[str, float]:
        """Convert the estimate to table columns, without an interval if there is only one seed.

        Args:
            mean: name of the column for the mean.
            prefix: prefix of the columns `lower` and `upper`.
        """
        ends = (np.nan, np.nan) if self.n_seeds == 1 else (self.lower, self.upper)
        return {mean: self.mean, f"{prefix}lower": ends[0], f"{prefix}upper": ends[1]}


def two_level_variance(values: np.ndarray) -> tuple[float, float]:
    """Standard error of the mean of a table [seeds, tasks], and its degrees of freedom.

    See the module's docstring for both formulas. With one seed, only tasks vary.

    Raises:
        ValueError: `values` is not a table with at least one seed and two tasks.
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


def with_pseudo_tasks(difference: np.ndarray) -> np.ndarray:
    """Append two columns, 1 and -1, to differences of success [seeds, tasks]."""
    return np.hstack([difference, np.tile([1.0, -1.0], (len(difference), 1))])


def rate_interval(success: np.ndarray, level: float = LEVEL) -> Estimate:
    """Success rate of a table [seeds, tasks], with an interval that stays inside [0, 1].

    Each cell is 0 or 1, or a mean of such values over several rounds. With one seed and cells of 0
    and 1, this is Wilson's interval over the tasks. Otherwise, the sample size in Wilson's formula
    is the effective size p (1 - p) / se^2, and the normal quantile is replaced by a t quantile.
    This is the method of Korn and Graubard 1998, "Confidence Intervals for Proportions with Small
    Expected Number of Positive Counts Estimated from Survey Data", Survey Methodology 24.

    For the effective size, one solved and one failed pseudo-task are added to the table, so that
    the interval has a positive width even at a rate of 0 or 1.
    """
    success = _table(success)
    seeds, tasks = success.shape
    pseudo = np.tile([1.0, 0.0], (seeds, 1))
    error, freedom = two_level_variance(np.hstack([success, pseudo]))
    mean = float(success.mean())
    if seeds == 1 and np.isin(success, (0, 1)).all():
        lower, upper = wilson_interval(success.sum(), tasks, 1 - level)
    else:
        shrunk = (success.mean(axis=0).sum() + 1) / (tasks + 2)
        effective = shrunk * (1 - shrunk) / error**2
        quantile = stats.t.ppf((1 + level) / 2, freedom)
        # With two seeds, the tail probability may be 1e-37. The level 1 - 1e-37 would be rounded to
        # 1, so pass the tail probability instead. `max` prevents its underflow to 0.
        tails = max(2 * stats.norm.sf(quantile), 1e-300)
        lower, upper = wilson_interval(mean * effective, effective, tails)
    return Estimate(mean, min(lower, mean), max(upper, mean), error, freedom, seeds, tasks)


def mean_interval(values: np.ndarray, level: float = LEVEL) -> Estimate:
    """Mean of a crossed table [seeds, tasks] of returns or their differences, and its t interval.

    Returns are not counts, so there are no pseudo-tasks and the interval is not clipped.
    """
    values = _table(values)
    error, freedom = two_level_variance(values)
    mean = float(values.mean())
    half = error * stats.t.ppf((1 + level) / 2, freedom)
    return Estimate(mean, mean - half, mean + half, error, freedom, *values.shape)


def wilson_interval(successes: float, trials: float, tails: float = ALPHA) -> tuple[float, float]:
    """Wilson's score interval of a proportion. Counts may be fractional, e.g. effective sizes.

    Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference"
    (https://doi.org/10.1080/01621459.1927.10502953). `tails` is the total two-tailed probability.
    """
    lower, upper = proportion_confint(successes, trials, alpha=tails, method="wilson")
    return max(0.0, float(lower)), min(1.0, float(upper))


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order of `p_values`.

    Source: Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure"
    (https://www.jstor.org/stable/4615733).
    """
    return of_pairs(p_values, [])[0]


def of_pairs(different: list[float], equivalent: list[float]) -> tuple[list[float], list[float]]:
    """Adjusted p-values of a difference test and an equivalence test of each pair.

    A pair has two null hypotheses: a difference of 0, and a difference outside the margin. At most
    one of them is true. In each step of Holm's procedure, p-values are therefore multiplied by the
    number of pairs with a remaining hypothesis, not by the number of remaining hypotheses.
    Source: Shaffer 1986, "Modified Sequentially Rejective Multiple Test Procedures"
    (https://doi.org/10.1080/01621459.1986.10478341).

    Args:
        different: p-values of the difference tests.
        equivalent: p-values of the equivalence tests of the same pairs. If it is empty, the result
            is Holm's correction of `different`.
    """
    p_values = np.array([*different, *equivalent])
    pairs, highest = len(different), 0.0
    adjusted = np.empty(len(p_values))
    left = np.full(pairs, 2 if len(equivalent) else 1)
    for place in p_values.argsort(kind="stable"):
        highest = max(highest, (left > 0).sum() * p_values[place])
        adjusted[place] = min(1.0, highest)
        left[place % pairs] -= 1
    adjusted[np.isnan(p_values)] = np.nan
    return adjusted[:pairs].tolist(), adjusted[pairs:].tolist()


def probability_of_improvement(method: np.ndarray, baseline: np.ndarray) -> float | None:
    """Share of pairs (method's run, baseline's run) in which the method's run scores higher.

    `method` and `baseline` are scores [seeds, tasks]. A run's score is its mean over tasks, and
    ties count half (Mann-Whitney statistic). With one run per arm, the share could only be 0, 1/2
    or 1, so the result is None. Source: Agarwal et al. 2021, "Deep Reinforcement Learning at the
    Edge of the Statistical Precipice" (https://arxiv.org/abs/2108.13264).
    """
    method, baseline = _table(method), _table(baseline)
    pairs = method.shape[0] * baseline.shape[0]
    if pairs == 1:
        return None
    # Sums are rounded so that equal scores tie exactly.
    mine, theirs = (np.round(table.sum(axis=1), 9) for table in (method, baseline))
    test = stats.mannwhitneyu(mine, theirs, method="asymptotic")
    return float(test.statistic / pairs)


def verdict(mean: float, adjusted_p: float, n_seeds: int, alpha: float = ALPHA) -> str:
    """`better`, `worse` or `inconclusive`, given the Holm-adjusted p-value of a difference.

    With fewer than `FEWEST_SEEDS` seeds, the result is `one seed` or `too few seeds`.
    """
    if n_seeds < FEWEST_SEEDS:
        return "one seed" if n_seeds == 1 else "too few seeds"
    if adjusted_p >= alpha or mean == 0:
        return "inconclusive"
    return "better" if mean > 0 else "worse"


def with_verdicts(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Add columns `p_holm` and `verdict`, given columns `difference`, `n_seeds` and `p_value`.

    With fewer than `FEWEST_SEEDS` seeds, the p-values become NaN. With one seed, the standard error
    and its degrees of freedom also become NaN, because they are estimated from tasks only.
    """
    table = table.assign(p_holm=holm(table["p_value"].tolist()))
    rows = zip(table["difference"], table["p_holm"], table["n_seeds"], strict=True)
    table = table.assign(verdict=[verdict(*row, 1 - level) for row in rows])
    for names, too_few in ((_OF_TASKS_ALONE, 2), (_OF_VERDICTS, FEWEST_SEEDS)):
        columns = [name for name in names if name in table]
        table[columns] = table[columns].astype(float).mask(table["n_seeds"] < too_few)
    return table


def _table(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or values.shape[0] < 1 or values.shape[1] < 2:
        raise ValueError(f"expected a table [seeds, tasks >= 2], got shape {values.shape}")
    return values
