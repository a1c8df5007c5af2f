"""What a study can detect, and how many seeds a given difference needs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.evaluation.statistics import LEVEL, Estimate

POWER = 0.8
DIFFERENCES = (0.03, 0.05, 0.10)
# A plan of more seeds is not practical; more tasks or a larger difference are.
MOST_SEEDS = 200
# A smaller difference of two means is a floating-point error.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Spread:
    """Variance components of a crossed table [seeds, tasks] of paired differences.

    Attributes:
        seeds: variance of the seeds' means over the panel.
        tasks: variance of the tasks' means over all possible seeds.
        residual: variance of what neither the seed nor the task explains.
        n_tasks: number of tasks.
    """

    seeds: float
    tasks: float
    residual: float
    n_tasks: int

    def error(self, n_seeds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Standard errors of the mean difference with so many seeds, and their degrees of freedom.

        They are those of `statistics.two_level_variance`, whose variance of the tasks' means
        contains the residual of each task's mean over the seeds.

        Args:
            n_seeds: numbers of seeds [k], each at least 2.
        """
        from_seeds = self.seeds / n_seeds
        from_tasks = (self.tasks + self.residual / n_seeds) / self.n_tasks
        variance = from_seeds + from_tasks
        spread = from_seeds**2 / (n_seeds - 1) + from_tasks**2 / (self.n_tasks - 1)
        freedom = np.divide(variance**2, spread, out=n_seeds - 1.0, where=spread > 0)
        return np.sqrt(variance), freedom


def seeds_differ(differences: np.ndarray) -> bool:
    """Whether paired differences [seeds, tasks] show a spread between seeds.

    One seed shows none, and neither do seeds whose means are all equal, as when no run wins
    anything. Nothing is then known of what another seed would do.
    """
    return bool(np.ptp(np.asarray(differences).mean(axis=1)) > _ROUNDING)


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

    It is (t_{1 - alpha/(2m)} + t_{POWER}) * error. alpha / m is the first step of Holm's correction
    over the m = `family` comparisons. If only one arm of the family truly differs, its comparison
    must pass this step. Source: Bloom 1995, "Minimum Detectable Effects"
    (https://doi.org/10.1177/0193841X9501900504).
    """
    tail = (1 - level) / 2 / family
    return (stats.t.isf(tail, freedom) + stats.t.ppf(POWER, freedom)) * error


def spread(differences: np.ndarray) -> Spread:
    """Variance components of paired differences [seeds >= 2, tasks >= 2].

    They are those of a two-way layout with one observation per cell. The residual mean square
    estimates the residual variance r. The variance of the tasks' means over S seeds estimates the
    variance of the tasks plus r / S; what is left of it after r / S is taken off is at least 0.
    Source: Searle, Casella and McCulloch 1992, Variance Components, chapter 4.

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
    return Spread(float(by_seed.var(ddof=1)), float(tasks), float(residual), n_tasks)


def pooled(spreads: Sequence[Spread]) -> Spread:
    """Mean of each component over comparisons on the same tasks.

    With few seeds, a single comparison's variance between seeds is a rough estimate. The mean is
    firmer, although all comparisons share the baseline's runs.
    """
    components = [(each.seeds, each.tasks, each.residual) for each in spreads]
    return Spread(*map(float, np.mean(components, axis=0)), spreads[0].n_tasks)


def seeds_needed(
    found: Spread, difference: float, family: int = 1, level: float = LEVEL
) -> int | None:
    """Fewest seeds, at least 2, with which a difference is detected with power `POWER`.

    `family` and `level` are as in `detectable`. None if `MOST_SEEDS` are too few; more
    tasks may then help.
    """
    numbers = np.arange(2, MOST_SEEDS + 1)
    enough = detectable(*found.error(numbers), family, level) <= difference
    return int(numbers[enough.argmax()]) if enough.any() else None


def seeds_table(tables: Sequence[np.ndarray], level: float) -> pd.DataFrame:
    """How many seeds the differences of `DIFFERENCES` need, one row per difference.

    The column `seeds` is for the pooled spread of all comparisons; `fewest` and `most` are the
    extremes over single comparisons whose seeds differ. A number beyond `MOST_SEEDS` is NaN. The
    table is empty if no comparison shows how far seeds differ (`seeds_differ`).

    Args:
        tables: differences [seeds, tasks] of each comparison of a family, all of one shape.
        level: confidence level.
    """
    differing = [spread(table) for table in tables if seeds_differ(table)]
    if not differing:
        return pd.DataFrame()
    spreads = [spread(table) for table in tables]
    rows = []
    for difference in DIFFERENCES:
        alone = [seeds_needed(each, difference, len(tables), level) for each in differing]
        counts = [np.inf if number is None else number for number in alone]
        rows.append(
            {
                "difference": difference,
                "seeds": seeds_needed(pooled(spreads), difference, len(tables), level),
                "fewest": min(counts),
                "most": max(counts),
                "comparisons": len(tables),
                "n_seeds": len(tables[0]),
                "level": level,
                "power": POWER,
            }
        )
    table = pd.DataFrame(rows)
    counted = ["seeds", "fewest", "most"]
    return table.assign(**table[counted].astype(float).replace(np.inf, np.nan))
