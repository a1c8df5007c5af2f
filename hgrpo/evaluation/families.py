"""Paired comparisons of arms with one baseline: with verdicts, or for the record only.

Holm's correction covers a family: all comparisons with one baseline, or a study's declared pairs.
"""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from hgrpo import streams
from hgrpo.errors import UserError
from hgrpo.evaluation import power, scores, statistics
from hgrpo.evaluation.outcomes import GREEDY, Outcomes
from hgrpo.evaluation.played_endpoints import Arm, Played
from hgrpo.evaluation.settings import Score, StatisticsConfig


def with_verdicts(
    played: Played, family: Sequence[tuple[str, Arm]], settings: StatisticsConfig
) -> pd.DataFrame:
    """Compare each method's greedy play with its baseline, at the declared endpoint and score.

    The minimum detectable effect is NaN where seeds show no spread (`power.seeds_differ`), and
    infinite where no difference that a success rate allows would be detected.

    Args:
        family: methods, each with its baseline.

    Raises:
        UserError: an arm and its baseline have different seeds.
    """
    score, level, rows = settings.score, settings.confidence, []
    for method, baseline in family:
        mine, theirs = played[method, GREEDY], played[baseline]
        _check_pairs(method, mine, baseline[0], theirs)
        tables = scores.table(mine, score), scores.table(theirs, score)
        estimate = scores.score_difference(mine, theirs, score, level)
        rng = streams.generator("bootstrap", method, *baseline)
        lower, upper = statistics.bootstrap_interval(
            tables[0] - tables[1], rng, settings.bootstrap, level
        )
        effect = power.minimum_detectable_effect(estimate, len(family), level)
        base = tables[1].mean()
        if score == "success" and effect > max(base, 1 - base):
            effect = np.inf
        if not power.seeds_differ(tables[0] - tables[1]):
            effect = np.nan
        rows.append(
            _pair(method, baseline)
            | {
                "n_seeds": estimate.n_seeds,
                "n_tasks": estimate.n_tasks,
                "endpoint": tables[0].mean(),
                "baseline_endpoint": tables[1].mean(),
                **estimate.columns("difference"),
                "standard_error": estimate.standard_error,
                "degrees_of_freedom": estimate.degrees_of_freedom,
                "bootstrap_lower": lower,
                "bootstrap_upper": upper,
                "p_value": estimate.p_value,
                "probability_of_improvement": statistics.probability_of_improvement(*tables),
                "minimum_detectable_effect": effect,
            }
        )
    return statistics.with_verdicts(pd.DataFrame(rows), level)


def for_the_record(
    played: Played, methods: Sequence[str], baseline: Arm, score: Score, level: float
) -> list[dict]:
    """Paired differences of another endpoint or score: intervals, but no verdicts."""
    return [
        _pair(method, baseline)
        | scores.score_difference(played[method, GREEDY], played[baseline], score, level).columns(
            "difference"
        )
        for method in methods
    ]


def mcnemar(last_round: Played, methods: Sequence[str], baseline: Arm) -> list[dict]:
    """McNemar's test of each method and seed on greedy success after the last round."""
    theirs, rows = last_round[baseline], []
    for method in methods:
        mine = last_round[method, GREEDY]
        for seed, ours, other in zip(mine.seeds, mine.success, theirs.success, strict=True):
            test = statistics.mcnemar(ours, other)
            rows.append(_pair(method, baseline) | {"seed": seed} | asdict(test))
    return rows


def paired(played: Played, methods: Sequence[str], baseline: Arm, score: Score) -> list[np.ndarray]:
    """Differences [seeds, tasks] of each method's greedy play and the baseline."""
    theirs = played[baseline]
    return [scores.differences(played[method, GREEDY], theirs, score) for method in methods]


def _pair(method: str, baseline: Arm) -> dict:
    return {"method": method, "baseline": baseline[0], "baseline_temperature": baseline[1]}


def _check_pairs(method: str, mine: Outcomes, baseline: str, theirs: Outcomes) -> None:
    """Raise a `UserError` unless both arms have the same seeds; `check_episodes` checks tasks."""
    missing = [f"{baseline} seed {seed}" for seed in mine.seeds if seed not in theirs.seeds]
    missing += [f"{method} seed {seed}" for seed in theirs.seeds if seed not in mine.seeds]
    if missing:
        raise UserError(
            f"{method} against {baseline}: no test episodes of {', '.join(missing)} to pair with"
        )
