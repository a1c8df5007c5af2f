"""Minimum detectable effects, and the number of seeds that a given difference needs.

All powers are those of the t test of `differences`: its statistic has a noncentral t distribution,
whose noncentrality is the true difference over its standard error. The estimates of a study stand
for the true values.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special, stats

from hgrpo.evaluation.statistics import FEWEST_SEEDS, LEVEL, Estimate

POWER = 0.8
DIFFERENCES = (0.03, 0.05, 0.10)
# A plan of more seeds is not practical; more tasks or a larger difference are.
MOST_SEEDS = 200
# A smaller variance between runs is a floating-point error.
_ROUNDING = 1e-18


@dataclass(frozen=True)
class Spread:
    """Components of the standard error of a mean difference [seeds, tasks].

    Attributes:
        runs: variance of the difference of one seed, from all arms (`run_spread`).
        tasks: variance of the tasks' means over all possible seeds.
        residual: variance that neither seed nor task explains.
        n_tasks: number of tasks.
        freedom: degrees of freedom of `runs` that each seed beyond the first adds.
    """

    runs: float
    tasks: float
    residual: float
    n_tasks: int
    freedom: float

    def error(self, n_seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Standard errors of the mean difference with so many seeds, and their degrees of freedom.

        The variance of the tasks' means contains the residual of each task's mean over the seeds.

        Args:
            n_seeds: numbers of seeds [k], each at least 2.
        """
        from_tasks = (self.tasks + self.residual / n_seeds) / self.n_tasks
        return np.sqrt(self.runs / n_seeds + from_tasks), self.freedom * (n_seeds - 1)


def seeds_differ(of_runs: float) -> bool:
    """Whether a variance between runs shows a spread.

    It does not if all runs are equal, as when no run wins anything; the runs of another seed are
    then unpredictable.
    """
    return bool(of_runs > _ROUNDING)


def minimum_detectable_effect(estimate: Estimate, family: int = 1, level: float = LEVEL) -> float:
    """Smallest true difference that a repeated study detects with power `POWER`.

    The observed standard error stands for that of the repeated study. `family` is as in
    `detectable`.
    """
    return float(detectable(estimate.standard_error, estimate.degrees_of_freedom, family, level))


def detectable(
    error: np.ndarray | float, freedom: np.ndarray | float, family: int = 1, level: float = LEVEL
) -> np.ndarray | float:
    """True difference that is detected with power `POWER` at a given standard error.

    At this noncentrality a t statistic exceeds `critical`. The source of the idea is Bloom 1995,
    "Minimum Detectable Effects" (https://doi.org/10.1177/0193841X9501900504), which takes a sum of
    two quantiles of the central t distribution and so promises too much with few degrees of
    freedom.
    """
    limit = critical(freedom, family, level)
    return special.nctdtrinc(freedom, 1 - POWER, limit) * error


def critical(
    freedom: np.ndarray | float, family: int = 1, level: float = LEVEL
) -> np.ndarray | float:
    """The t value that one of `family` comparisons must exceed in the first step of Holm's method.

    If only one arm of the family truly differs, its comparison must pass this step.
    """
    return stats.t.isf((1 - level) / 2 / family, freedom)


def probability_above(limit: float, truth: float, estimate: Estimate) -> float:
    """Probability that a repeat's t value exceeds `limit` if the true difference is `truth`.

    With an error of 0 it is 1 or 0.
    """
    if estimate.standard_error == 0:
        return float(truth > 0)
    away = truth / estimate.standard_error
    return float(stats.nct.sf(limit, estimate.degrees_of_freedom, away))


def repeats_alike(estimate: Estimate, verdict: str, family: int, level: float = LEVEL) -> float:
    """Probability that a repeat of the study gives a comparison the same verdict.

    The observed difference stands for the true one. Where the verdict is a finding, it is on
    average larger than the true one, so that fewer repeats agree.

    Args:
        verdict: better, worse or inconclusive; NaN comes back for another one.
        family: number of comparisons of its table.
    """
    limit = critical(estimate.degrees_of_freedom, family, level)
    above = probability_above(limit, estimate.mean, estimate)
    below = probability_above(limit, -estimate.mean, estimate)
    return {"better": above, "worse": below, "inconclusive": 1 - above - below}.get(verdict, np.nan)


def spread(differences: np.ndarray, of_runs: float, freedom: float) -> Spread:
    """Components of a difference's standard error, from its table [seeds >= 2, tasks >= 2].

    Tasks and residual are those of a two-way layout with one observation per cell. The residual
    mean square estimates the residual variance r. The variance of the tasks' means over S seeds
    estimates the variance of the tasks plus r / S; the difference is cut off at 0. Source: Searle,
    Casella and McCulloch 1992, Variance Components, chapter 4.

    Args:
        of_runs: variance of the mean difference between runs (`differences.Difference`).
        freedom: its degrees of freedom.

    Raises:
        ValueError: there are fewer than two seeds or tasks.
    """
    values = np.asarray(differences, dtype=float)
    if values.ndim != 2 or min(values.shape) < 2:
        raise ValueError(f"two seeds and two tasks or more are needed, not {values.shape}")
    n_seeds, n_tasks = values.shape
    by_seed, by_task = values.mean(axis=1), values.mean(axis=0)
    left = values - by_seed[:, None] - by_task + values.mean()
    residual = (left**2).sum() / ((n_seeds - 1) * (n_tasks - 1))
    tasks = max(0.0, by_task.var(ddof=1) - residual / n_seeds)
    per_seed = freedom / (n_seeds - 1)
    return Spread(of_runs * n_seeds, float(tasks), float(residual), n_tasks, per_seed)


def pooled(spreads: Sequence[Spread]) -> Spread:
    """Mean of each component over comparisons on the same tasks."""
    parts = [(each.runs, each.tasks, each.residual, each.freedom) for each in spreads]
    runs, tasks, residual, freedom = map(float, np.mean(parts, axis=0))
    return Spread(runs, tasks, residual, spreads[0].n_tasks, freedom)


def seeds_needed(
    components: Spread, difference: float, family: int = 1, level: float = LEVEL
) -> int | None:
    """Fewest seeds with which a difference is detected with power `POWER`.

    It is at least `FEWEST_SEEDS`, because fewer give no verdict. `family` and `level` are as in
    `detectable`. None if `MOST_SEEDS` are too few; more tasks may then help.
    """
    numbers = np.arange(FEWEST_SEEDS, MOST_SEEDS + 1)
    enough = detectable(*components.error(numbers), family, level) <= difference
    return int(numbers[enough.argmax()]) if enough.any() else None


def seeds_table(spreads: Sequence[Spread], n_seeds: int, level: float) -> pd.DataFrame:
    """How many seeds the differences of `DIFFERENCES` need, one row per difference.

    The column `seeds` is for the mean spread of all comparisons; `fewest` and `most` are the
    extremes over single comparisons. A number beyond `MOST_SEEDS` is NaN. The table is empty if the
    runs show no spread (`seeds_differ`).

    Args:
        spreads: of each comparison of a family.
        n_seeds: number of seeds that they come from.
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
