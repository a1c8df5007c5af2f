"""Scores of an arm at an endpoint, as tables of seeds and tasks, and their intervals."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from hgrpo.errors import UserError
from hgrpo.evaluation import statistics
from hgrpo.evaluation.outcomes import TEST, Outcomes, outcomes, select
from hgrpo.evaluation.settings import Score
from hgrpo.evaluation.statistics import Estimate

COLUMNS: dict[Score, str] = {"success": "success", "return": "mean_return"}


def mean_outcomes(
    episodes: pd.DataFrame, method: str, rounds: Iterable[int], temperature: float
) -> Outcomes:
    """Success and return of each seed and test task, as means over rounds.

    Raises:
        UserError: the arm has no test episodes at that temperature in one of the rounds, or in one
            round its seeds differ from those of another.
    """
    test = episodes[episodes["panel"] == TEST]
    found = {number: outcomes(select(test, method, number, temperature)) for number in rounds}
    seeds = sorted({seed for played in found.values() for seed in played.seeds})
    for number, played in found.items():
        if played.seeds and played.seeds == seeds:
            continue
        lacking = [f", seed {seed}" for seed in seeds if seed not in played.seeds]
        raise UserError(
            f"{method}: no test episodes of round {number}{''.join(lacking[:1])} at temperature "
            f"{temperature:g}, which an endpoint reads"
        )
    return Outcomes(
        np.mean([played.success for played in found.values()], axis=0),
        np.mean([played.returns for played in found.values()], axis=0),
        seeds,
    )


def table(played: Outcomes, score: Score) -> np.ndarray:
    """The scores [seeds, tasks] that the study compares: success, or return."""
    return played.success if score == "success" else played.returns


def mean_score(played: Outcomes, score: Score, level: float) -> Estimate:
    """Mean score with its interval."""
    interval = statistics.rate_interval if score == "success" else statistics.mean_interval
    return interval(table(played, score), level)
