"""Recompute verdicts of studies that were published without the outcome of every game.

The analysis in `hgrpo.evaluation.differences` requires the scores of the runs, which are in
seeds.csv, and the variance between games (`of_games`). This variance follows from the standard
errors that were published until November 2026:

    se^2 = s^2(differences of seeds) / S + of_games.

An A/A twin is treated as a separate arm, because these studies did not declare in advance that its
runs are pooled with the reference's runs. With fewer than `FEWEST_SEEDS` seeds, published intervals
are kept and verdicts are dropped. The columns `verdict_before` and `standard_error_before` contain
the previous values.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from hgrpo.evaluation import gates, power
from hgrpo.evaluation.differences import variance_of_runs
from hgrpo.evaluation.outcomes import GREEDY
from hgrpo.evaluation.run_spread import RunSpread, run_spread
from hgrpo.evaluation.statistics import (
    FEWEST_SEEDS,
    LEVEL,
    Estimate,
    probability_of_improvement,
    with_verdicts,
)

FAMILIES = ("against_reference", "against_sft", "pairs")
BEFORE = "verdict_before"


@dataclass(frozen=True)
class Runs:
    """Scores of a study's runs at its endpoint, from seeds.csv.

    Attributes:
        scores: one row per seed, one column per (method, temperature).
        trained: the trained arms.
        success: whether the score is the success rate.
    """

    scores: pd.DataFrame
    trained: list[str]
    success: bool

    @cached_property
    def spread(self) -> RunSpread:
        return run_spread(np.array([self.scores[name, GREEDY] for name in self.trained]))


def read_runs(folder: Path) -> Runs:
    """The runs of a study, from its published files."""
    seeds, endpoints = pd.read_csv(folder / "seeds.csv"), read(folder, "endpoints")
    scored = endpoints.loc[endpoints["declared"], "score"].iloc[0] if len(endpoints) else "success"
    column = "endpoint" if "endpoint" in seeds else "success"
    scores = seeds.pivot(index="seed", columns=["method", "temperature"], values=column)
    fixed = read(folder, "against_sft")["baseline"].iloc[0]
    trained = [name for name in dict.fromkeys(seeds["method"]) if name != fixed]
    return Runs(scores, trained, scored == "success")


def of_games(table: pd.DataFrame, runs: Runs) -> pd.Series:
    """Between-game variance of each mean difference, computed from its published standard error."""
    error = table["standard_error"]
    return error**2 - [_of_seeds(row, runs)[0] for row in table.itertuples()]


def family(table: pd.DataFrame, games: pd.Series, runs: Runs) -> pd.DataFrame:
    """Recompute a published table with the current analysis; `games` is from `of_games`."""
    before = {BEFORE: table.get(BEFORE, table["verdict"])}
    error = table.get("standard_error_before", table["standard_error"])
    before["standard_error_before"] = error
    rows = list(table.itertuples())
    estimates = [_estimate(row, value, runs) for row, value in zip(rows, games, strict=True)]
    ends = ("lower", "upper", "standard_error", "degrees_of_freedom", "p_value")
    score = "endpoint" if "endpoint" in table else "success"
    means = runs.scores.mean()
    table = table.assign(
        **{score: [means[name, GREEDY] for name in table["method"]]},
        **{f"baseline_{score}": [means[_baseline(row)] for row in rows]},
        difference=[each.mean for each in estimates],
        **{name: [getattr(each, name) for each in estimates] for name in ends},
        probability_of_improvement=[_improvement(row, runs) for row in rows],
        minimum_detectable_effect=[_detectable(each, len(table)) for each in estimates],
    )
    table = with_verdicts(table, LEVEL)
    judged = zip(estimates, table["verdict"], strict=True)
    repeats = [power.repeats_alike(each, word, len(table)) for each, word in judged]
    return table.assign(repeats_alike=repeats, of_games=games, **before)


def judged_gates(table: pd.DataFrame, against: pd.DataFrame) -> pd.DataFrame:
    """Decide a study's gates from the comparisons that `family` recomputed."""
    before = table.get("result_before", table["result"])
    rows = table.astype({"points": object}).where(table.notna(), None)
    declared = [
        gates.Gate(
            arm=row.method, expect=row.expect, **({"points": row.points} if row.points else {})
        )
        for row in rows.itertuples()
    ]
    judged = gates.judge(declared, against, LEVEL).assign(result_before=before)
    # With fewer than `FEWEST_SEEDS` seeds, a gate has no result, so the gate's power is undefined.
    judged["power"] = judged["power"].mask(judged["n_seeds"] < FEWEST_SEEDS)
    judged.insert(1, "label", table["label"])
    return judged


def _of_seeds(row: tuple, runs: Runs) -> tuple[float, float]:
    """Return the between-seed variance of a mean difference, and the mean difference.

    The variance is computed as it was until November 2026. For success rates, it is shrunk by two
    pseudo-games per seed (Bonett and Price 2012).
    """
    each = _differences(row, runs)
    share = row.n_tasks / (row.n_tasks + 2) if runs.success else 1.0
    return share**2 * each.var(ddof=1) / len(each), each.mean()


def _differences(row: tuple, runs: Runs) -> np.ndarray:
    return (runs.scores[row.method, GREEDY] - runs.scores[_baseline(row)]).to_numpy()


def _baseline(row: tuple) -> tuple[str, float]:
    return row.baseline, row.baseline_temperature


def _estimate(row: tuple, games: float, runs: Runs) -> Estimate:
    seeds, mean = row.n_seeds, float(_differences(row, runs).mean())
    if seeds < FEWEST_SEEDS:
        of_runs, _ = _of_seeds(row, runs)
        panel = row.n_tasks + 2 * runs.success
        spread = of_runs**2 / (seeds - 1) + games**2 / (panel - 1)
        freedom = (of_runs + games) ** 2 / spread
    else:
        pair = row.method, row.baseline
        variance = variance_of_runs(runs.spread, runs.trained, *pair, row.baseline, None)
        of_runs, freedom = variance[0].item(), variance[1].item()
    error = float(np.sqrt(of_runs + games))
    half = error * stats.t.ppf((1 + LEVEL) / 2, freedom)
    lower, upper = mean - half, mean + half
    if runs.success:
        lower, upper = max(-1.0, lower), min(1.0, upper)
    return Estimate(mean, lower, upper, error, float(freedom), seeds, row.n_tasks)


def _improvement(row: tuple, runs: Runs) -> float | None:
    arms = (row.method, GREEDY), _baseline(row)
    # Use the mean of each run, because the statistic compares runs.
    return probability_of_improvement(*(runs.scores[[arm, arm]].to_numpy() for arm in arms))


def _detectable(estimate: Estimate, comparisons: int) -> float:
    if estimate.n_seeds < FEWEST_SEEDS:
        return np.nan
    return power.minimum_detectable_effect(estimate, comparisons)


def read(folder: Path, name: str) -> pd.DataFrame:
    """Read a published table of a study; empty if it does not exist."""
    path = folder / f"{name}.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def write(table: pd.DataFrame, folder: Path, name: str) -> None:
    """Write a table of a study."""
    table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
