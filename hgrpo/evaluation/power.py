"""Minimum detectable effects, and the number of seeds required to detect a given difference.

All functions are about the power of the t test in `differences`. The test statistic has a
noncentral t distribution. The noncentrality parameter is the true difference divided by its
standard error. Unknown true values are replaced by a study's estimates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special, stats

from hgrpo.evaluation.statistics import FEWEST_SEEDS, LEVEL, Estimate

POWER = 0.8
DIFFERENCES = (0.03, 0.05, 0.10)
# Larger numbers of seeds are not considered, because they would be impractical.
MOST_SEEDS = 200
# Variances between runs below this value are treated as floating-point errors.
_ROUNDING = 1e-18


@dataclass(frozen=True)
class Spread:
    """Components of the standard error of a mean difference over seeds and tasks.

    Attributes:
        runs: between-run variance of a single seed's difference, from all arms (`run_spread`).
        tasks: variance of the expected difference over tasks.
        residual: variance that is explained by neither seed nor task.
        n_tasks: number of tasks.
        freedom: degrees of freedom of `runs`, divided by (number of seeds - 1).
    """

    runs: float
    tasks: float
    residual: float
    n_tasks: int
    freedom: float

    def error(self, n_seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Standard error of the mean difference, and its degrees of freedom, [k] each.

        Args:
            n_seeds: numbers of seeds [k], each at least 2.
        """
        from_tasks = (self.tasks + self.residual / n_seeds) / self.n_tasks
        return np.sqrt(self.runs / n_seeds + from_tasks), self.freedom * (n_seeds - 1)


def seeds_differ(of_runs: float) -> bool:
    """Whether the between-run variance is positive.

    If it is 0, e.g. because no run has any success, the variance of further seeds is unknown.
    """
    return bool(of_runs > _ROUNDING)


def minimum_detectable_effect(estimate: Estimate, family: int = 1, level: float = LEVEL) -> float:
    """Smallest true difference that a repeat of the study detects with power `POWER`.

    The repeat is assumed to have the observed standard error. `family` is as in `critical`.
    """
    return float(detectable(estimate.standard_error, estimate.degrees_of_freedom, family, level))


def detectable(
    error: np.ndarray | float, freedom: np.ndarray | float, family: int = 1, level: float = LEVEL
) -> np.ndarray | float:
    """True difference that is detected with power `POWER` at a given standard error.

    At this true difference, the t statistic exceeds `critical` with probability `POWER`. Based on
    Bloom 1995, "Minimum Detectable Effects" (https://doi.org/10.1177/0193841X9501900504). Bloom
    adds two quantiles of the central t distribution, which is too optimistic if there are few
    degrees of freedom.
    """
    limit = critical(freedom, family, level)
    return special.nctdtrinc(freedom, 1 - POWER, limit) * error


def critical(
    freedom: np.ndarray | float, family: int = 1, level: float = LEVEL
) -> np.ndarray | float:
    """Critical t value of the first step of Holm's method, for `family` comparisons.

    If only one arm of the family truly differs, its difference must pass this step to be detected.
    """
    return stats.t.isf((1 - level) / 2 / family, freedom)


def probability_above(limit: float, truth: float, estimate: Estimate) -> float:
    """Probability that the t value in a repeat of the study exceeds `limit`.

    `truth` is the assumed true difference. If the standard error is 0, the result is 0 or 1.
    """
    if estimate.standard_error == 0:
        return float(truth > 0)
    away = truth / estimate.standard_error
    return float(stats.nct.sf(limit, estimate.degrees_of_freedom, away))


def repeats_alike(estimate: Estimate, verdict: str, family: int, level: float = LEVEL) -> float:
    """Probability that a repeat of the study reaches the same verdict on a comparison.

    The observed difference is used as the true difference. If the verdict is `better` or `worse`,
    this overestimates the size of the true difference on average, so the probability is too high.

    Args:
        verdict: better, worse or inconclusive. For any other verdict, the result is NaN.
        family: number of comparisons in the family.
    """
    limit = critical(estimate.degrees_of_freedom, family, level)
    above = probability_above(limit, estimate.mean, estimate)
    below = probability_above(limit, -estimate.mean, estimate)
    return {"better": above, "worse": below, "inconclusive": 1 - above - below}.get(verdict, np.nan)


def spread(differences: np.ndarray, of_runs: float, freedom: float) -> Spread:
    """Compute the components from a table of paired differences [seeds >= 2, tasks >= 2].

    `tasks` and `residual` are estimated from a two-way layout with one observation per cell. The
    residual variance r is the residual mean square. The task variance is the variance of the tasks'
    means over S seeds minus r / S, clipped at 0. Source: Searle, Casella and McCulloch 1992,
    Variance Components, chapter 4.

    Args:
        of_runs: between-run variance of the mean difference (`differences.Difference`).
        freedom: degrees of freedom of `of_runs`.

    Raises:
        ValueError: there are fewer than two seeds or tasks.
    """
    values = np.asarray(differences, dtype=float)
    if values.ndim != 2 or min(values.shape) < 2:
        raise ValueError(f"expected at least two seeds and two tasks, not shape {values.shape}")
    n_seeds, n_tasks = values.shape
    by_seed, by_task = values.mean(axis=1), values.mean(axis=0)
    left = values - by_seed[:, None] - by_task + values.mean()
    residual = (left**2).sum() / ((n_seeds - 1) * (n_tasks - 1))
    tasks = max(0.0, by_task.var(ddof=1) - residual / n_seeds)
    per_seed = freedom / (n_seeds - 1)
    return Spread(of_runs * n_seeds, float(tasks), float(residual), n_tasks, per_seed)


def pooled(spreads: Sequence[Spread]) -> Spread:
    """Average each component over comparisons, all of which have the same tasks."""
    parts = [(each.runs, each.tasks, each.residual, each.freedom) for each in spreads]
    runs, tasks, residual, freedom = map(float, np.mean(parts, axis=0))
    return Spread(runs, tasks, residual, spreads[0].n_tasks, freedom)


def seeds_needed(
    components: Spread, difference: float, family: int = 1, level: float = LEVEL
) -> int | None:
    """Smallest number of seeds with which a difference is detected with power `POWER`.

    The number is at least `FEWEST_SEEDS`, because there is no verdict with fewer seeds. It is None
    if `MOST_SEEDS` seeds are too few. `family` and `level` are as in `critical`.
    """
    numbers = np.arange(FEWEST_SEEDS, MOST_SEEDS + 1)
    enough = detectable(*components.error(numbers), family, level) <= difference
    return int(numbers[enough.argmax()]) if enough.any() else None


def seeds_table(spreads: Sequence[Spread], n_seeds: int, level: float) -> pd.DataFrame:
    """Number of seeds required to detect each of `DIFFERENCES`, one row per difference.

    The column `seeds` is computed from variances averaged over all comparisons. `fewest` and `most`
    are the lowest and highest numbers for a single comparison. Numbers above `MOST_SEEDS` are NaN.
    The table is empty if scores do not vary between runs (`seeds_differ`).

    Args:
        spreads: components of each comparison of a family.
        n_seeds: number of seeds from which the components were estimated.
        level: confidence level.
    """
    if not any(seeds_differ(each.runs) for each in spreads):
        return pd.DataFrame()
    rows = []
    for difference in DIFFERENCES:
        alone = [seeds_needed(each, difference, len(spreads), level) for each in spreads]
        counts = [np.inf if number is None else number for number in alone]
        rows.append(
            {
                "difference": difference,
                "seeds": seeds_needed(pooled(spreads), difference, len(spreads), level),
                "fewest": min(counts),
                "most": max(counts),
                "comparisons": len(spreads),
                "n_seeds": n_seeds,
                "level": level,
                "power": POWER,
            }
        )
    table = pd.DataFrame(rows)
    counted = ["seeds", "fewest", "most"]
    return table.assign(**table[counted].astype(float).replace(np.inf, np.nan))
