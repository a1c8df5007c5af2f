"""Estimates differences between arms at one endpoint, over seeds and tasks.

The variance of a mean difference is the sum of two variances. The variance between runs is
estimated from all arms of the study (`run_spread`). The variance between tasks is
s^2(task means) / tasks. It includes the noise of single games, so the sum is biased upwards. The
degrees of freedom are those of the variance between runs, because a study has few runs and many
tasks. See Satterthwaite 1946, "An Approximate Distribution of Estimates of Variance Components",
https://doi.org/10.2307/3002019, for degrees of freedom of sums of variances.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.evaluation import statistics
from hgrpo.evaluation.designs import Factorial
from hgrpo.evaluation.outcomes import GREEDY, score_table
from hgrpo.evaluation.played_endpoints import Arm, Played
from hgrpo.evaluation.run_spread import RunSpread, run_spread
from hgrpo.evaluation.settings import Score
from hgrpo.evaluation.statistics import Estimate, with_pseudo_tasks


@dataclass(frozen=True)
class Difference:
    """An estimated difference and its components.

    Attributes:
        mine, theirs: scores [seeds, tasks] of the method and its baseline. If the baseline has an
            A/A twin, `theirs` is the mean of the baseline's and the twin's scores.
        tables: scores [seeds, tasks] of the baseline and of the baseline's twin, if there is one.
        of_runs: between-run variance of the mean difference.
    """

    estimate: Estimate
    mine: np.ndarray
    theirs: np.ndarray
    tables: tuple[np.ndarray, ...]
    of_runs: float


@dataclass(frozen=True)
class Runs:
    """The runs of a study at one endpoint.

    Attributes:
        trained: names of the trained arms.
        twin: A/A twin whose runs are pooled with those of the reference arm, or None.
    """

    played: Played
    trained: Sequence[str]
    reference: str
    twin: str | None
    score: Score
    level: float

    def difference(self, method: str, baseline: Arm) -> Difference:
        """Difference between the method's greedy score and the baseline's, by seed and task."""
        seeds = self.played[method, GREEDY].seeds
        mine, theirs = self._table((method, GREEDY)), self._table(baseline)
        tables = (theirs,)
        if len(seeds) == 1:
            return _difference(mine, tables, 0.0, np.inf, self)
        twin = self._twin(seeds)
        same = self._originals([name for name in self._alike(seeds) if name != twin])
        names = list(dict.fromkeys(same.values()))
        runs = np.array([self._table((name, GREEDY)).mean(axis=1) for name in names])
        of_twin = None if twin is None else self._table((twin, GREEDY)).mean(axis=1)
        spread = run_spread(runs, of_twin)
        if baseline[0] == self.reference and twin and method != twin:
            tables += (self._table((twin, GREEDY)),)
        pair = (same.get(name, name) for name in (method, baseline[0]))
        variance, freedom = variance_of_runs(spread, names, *pair, self.reference, twin)
        if baseline[0] not in self.trained:
            variance = variance + theirs.mean(axis=1).var(ddof=1) / len(seeds)
        return _difference(mine, tables, variance.item(), freedom.item(), self)

    def _table(self, arm: Arm) -> np.ndarray:
        return score_table(self.played[arm], self.score)

    def _alike(self, seeds: Sequence[int]) -> list[str]:
        return [name for name in self.trained if self.played[name, GREEDY].seeds == list(seeds)]

    def _originals(self, names: Sequence[str]) -> dict[str, str]:
        """Map each arm to the first arm with the same scores, so that duplicates count once."""
        first: dict[bytes, str] = {}
        # The reference comes first, so that it is kept if other arms have the same scores.
        for name in sorted(names, key=lambda name: name != self.reference):
            first.setdefault(self._table((name, GREEDY)).tobytes(), name)
        return {name: first[self._table((name, GREEDY)).tobytes()] for name in names}

    def _twin(self, seeds: Sequence[int]) -> str | None:
        return self.twin if {self.twin, self.reference} <= {*self._alike(seeds)} else None


def variance_of_runs(
    spread: RunSpread, names: Sequence[str], method: str, baseline: str, reference: str, twin: str
) -> tuple[np.ndarray, np.ndarray]:
    """Between-run variance of a mean difference, and its degrees of freedom."""
    if twin in (method, baseline):
        return spread.of_twin(names.index(reference))
    if baseline not in names:
        return spread.level(names.index(method))
    both = spread.from_both if twin and baseline == reference else spread.difference
    return both(names.index(method), names.index(baseline))


def contrast(
    tables: Mapping[str, np.ndarray], weights: Mapping[str, float], score: Score, level: float
) -> Estimate:
    """Estimate a contrast: a weighted sum of the arms' scores, with weights that sum to 0.

    Args:
        tables: maps every arm to its scores [seeds, tasks].
    """
    halves = [
        sum(np.abs(weights[arm]) * tables[arm] for arm in tables if weights[arm] * sign > 0)
        for sign in (1, -1)
    ]
    seeds = len(halves[0])
    if seeds == 1:
        variance, freedom = np.zeros(1), np.full(1, np.inf)
    else:
        spread = run_spread(np.array([table.mean(axis=1) for table in tables.values()]))
        variance, freedom = spread.contrast(np.array([weights[arm] for arm in tables]))
    return estimate(*halves, variance.item(), freedom.item(), score, level)


def estimate(
    mine: np.ndarray, theirs: np.ndarray, of_runs: float, freedom: float, score: Score, level: float
) -> Estimate:
    """Difference of two tables [seeds, tasks] with its interval.

    If the score is success, the variance between tasks is computed with two additional
    pseudo-tasks: one that only the arm solves, and one that only the baseline solves. The standard
    error is therefore never zero. The mean excludes the pseudo-tasks. Source: Bonett and Price
    2012, "Adjusted Wald Confidence Interval for a Difference of Binomial Proportions Based on
    Paired Data" (https://doi.org/10.3102/1076998611411915).

    Args:
        of_runs: between-run variance of the mean difference; 0 with one seed.
        freedom: degrees of freedom of `of_runs`; unused with one seed, where the degrees of
            freedom are those of the variance between tasks.
    """
    difference = mine - theirs
    values = with_pseudo_tasks(difference) if score == "success" else difference
    seeds, tasks = values.shape
    error = float(np.sqrt(of_runs + values.mean(axis=0).var(ddof=1) / tasks))
    freedom = float(tasks - 1 if seeds == 1 else freedom)
    mean, half = float(difference.mean()), error * stats.t.ppf((1 + level) / 2, freedom)
    lower, upper = mean - half, mean + half
    if score == "success":
        lower, upper = max(-1.0, lower), min(1.0, upper)
    return Estimate(mean, lower, upper, error, freedom, *difference.shape)


def _difference(
    mine: np.ndarray, tables: tuple[np.ndarray, ...], of_runs: float, freedom: float, runs: Runs
) -> Difference:
    theirs = np.mean(tables, axis=0)
    estimated = estimate(mine, theirs, of_runs, freedom, runs.score, runs.level)
    return Difference(estimated, mine, theirs, tables, of_runs)


def effects(
    scores: Mapping[str, np.ndarray], design: Factorial, score: Score, level: float
) -> pd.DataFrame:
    """Estimate each contrast of the design at the study's endpoint, one row per contrast.

    A contrast is the difference between the mean scores of two halves of the cells. A main effect
    is the score at a factor's non-reference level minus the score at its reference level. An
    interaction is half the change in the credit assigner's effect when the other factor changes.
    With this usual scaling (Box, Hunter and Hunter 2005, Statistics for Experimenters), all
    contrasts have the same expected standard error. The variance between runs is estimated from
    all cells. Holm's correction covers all rows.

    Args:
        scores: maps arms to endpoint scores [seeds, tasks], with the same seeds and tasks.
    """
    rows = []
    for factors in design.contrasts:
        signs = design.signs(*factors)
        weights = {arm: 2 * sign / len(signs) for arm, sign in signs.items()}
        effect = contrast({arm: scores[arm] for arm in signs}, weights, score, level)
        rows.append(
            {
                "effect": " x ".join(factors),
                "kind": "main" if len(factors) == 1 else "interaction",
                "n_seeds": effect.n_seeds,
                "n_tasks": effect.n_tasks,
                **effect.columns("difference"),
                "standard_error": effect.standard_error,
                "p_value": effect.p_value,
            }
        )
    return statistics.with_verdicts(pd.DataFrame(rows), level)


def cells(methods: pd.DataFrame, design: Factorial) -> pd.DataFrame:
    """Endpoint score of each cell, from `Comparison.methods`, in the order of factor levels."""
    greedy = methods[methods["temperature"] == GREEDY].set_index("method")
    columns = ["n_seeds", "n_tasks", "endpoint", "endpoint_lower", "endpoint_upper"]
    arm_of = {tuple(cell.values()): arm for arm, cell in design.cells.items()}
    arms = [arm_of[levels] for levels in product(*design.factors.values())]
    return pd.DataFrame(
        [{"method": arm, **design.cells[arm], **greedy.loc[arm, columns].to_dict()} for arm in arms]
    )
