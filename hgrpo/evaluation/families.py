"""Compares arms with a baseline, paired by seed and task, with or without verdicts.

A family contains all comparisons with one baseline, or all pairs of arms that a study declares.
Holm's correction is applied within each family.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hgrpo.errors import UserError
from hgrpo.evaluation import power, statistics
from hgrpo.evaluation.differences import Runs
from hgrpo.evaluation.outcomes import GREEDY, Outcomes
from hgrpo.evaluation.played_endpoints import Arm
from hgrpo.evaluation.settings import StatisticsConfig
from hgrpo.evaluation.statistics import Estimate


def with_verdicts(
    runs: Runs, family: Sequence[tuple[str, Arm]], settings: StatisticsConfig
) -> tuple[pd.DataFrame, list[power.Spread]]:
    """Compare each method with its baseline, by the declared score at the declared endpoint.

    The minimum detectable effect is NaN if scores do not vary between runs (`power.seeds_differ`),
    and infinite if even the largest possible difference in success rate would not be detected.

    Args:
        family: pairs (method, baseline). The method plays greedily.

    Returns:
        The table, and the components of each row's standard error (empty if there is one seed).

    Raises:
        UserError: an arm and its baseline have different seeds.
    """
    level, rows, spreads, estimates = settings.confidence, [], [], []
    for method, baseline in family:
        _check_pairs(method, runs.played[method, GREEDY], baseline[0], runs.played[baseline])
        difference = runs.difference(method, baseline)
        estimate, values = difference.estimate, difference.mine - difference.theirs
        estimates.append(estimate)
        effect = np.nan
        if estimate.n_seeds > 1:
            tasks = statistics.with_pseudo_tasks(values) if runs.score == "success" else values
            spread = power.spread(tasks, difference.of_runs, estimate.degrees_of_freedom)
            spreads.append(spread)
            if power.seeds_differ(spread.runs):
                effect = power.minimum_detectable_effect(estimate, len(family), level)
        base = difference.theirs.mean()
        if runs.score == "success" and effect > max(base, 1 - base):
            effect = np.inf
        rows.append(
            _pair(method, baseline)
            | {
                "n_seeds": estimate.n_seeds,
                "n_tasks": estimate.n_tasks,
                "baseline_runs": sum(map(len, difference.tables)),
                "endpoint": difference.mine.mean(),
                "baseline_endpoint": base,
                **estimate.columns("difference"),
                "standard_error": estimate.standard_error,
                "degrees_of_freedom": estimate.degrees_of_freedom,
                "p_value": estimate.p_value,
                "probability_of_improvement": statistics.probability_of_improvement(
                    difference.mine, np.concatenate(difference.tables)
                ),
                "minimum_detectable_effect": effect,
            }
        )
    table = statistics.with_verdicts(pd.DataFrame(rows), level)
    return _with_repeats(table, estimates, level), spreads


def _with_repeats(table: pd.DataFrame, estimates: Sequence[Estimate], level: float) -> pd.DataFrame:
    """Add `repeats_alike`: the probability that a repeat of the study gives the same verdict."""
    return table.assign(
        repeats_alike=[
            power.repeats_alike(estimate, verdict, len(table), level)
            for estimate, verdict in zip(estimates, table["verdict"], strict=True)
        ]
    )


def for_the_record(runs: Runs, methods: Sequence[str], baseline: Arm) -> list[dict]:
    """Paired differences, without verdicts, for an undeclared endpoint or score."""
    return [
        _pair(method, baseline) | runs.difference(method, baseline).estimate.columns("difference")
        for method in methods
    ]


def _pair(method: str, baseline: Arm) -> dict:
    return {"method": method, "baseline": baseline[0], "baseline_temperature": baseline[1]}


def _check_pairs(method: str, mine: Outcomes, baseline: str, theirs: Outcomes) -> None:
    missing = [f"{baseline} seed {seed}" for seed in mine.seeds if seed not in theirs.seeds]
    missing += [f"{method} seed {seed}" for seed in theirs.seeds if seed not in mine.seeds]
    if missing:
        raise UserError(
            f"{method} against {baseline}: test episodes are missing for {', '.join(missing)}; a "
            "paired comparison requires the same seeds"
        )
