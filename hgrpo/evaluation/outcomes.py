"""Arranges the outcomes and scores of an arm as tables [seeds, tasks]."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hgrpo.errors import UserError
from hgrpo.evaluation import statistics
from hgrpo.evaluation.settings import Score
from hgrpo.evaluation.statistics import Estimate

GREEDY = 0.0
TEST, VALIDATION = "test", "validation"
SCORE_COLUMNS: dict[Score, str] = {"success": "success", "return": "mean_return"}


@dataclass(frozen=True)
class Outcomes:
    """Success (0 or 1) and returns as tables [seeds, tasks], with sorted seeds and tasks."""

    success: np.ndarray
    returns: np.ndarray
    seeds: list[int]


def select(
    episodes: pd.DataFrame, method: str, round_index: int, temperature: float
) -> pd.DataFrame:
    """Episodes of one arm after one round at one temperature, on all panels."""
    return episodes[
        (episodes["method"] == method)
        & (episodes["round"] == round_index)
        & (episodes["temperature"] == temperature)
    ]


def outcomes(chosen: pd.DataFrame) -> Outcomes:
    """Build the tables from episodes that differ only in seed and task."""
    success, returns = (
        chosen.pivot(index="seed", columns="task_id", values=column).sort_index()
        for column in ("success", "env_return")
    )
    return Outcomes(success.to_numpy(float), returns.to_numpy(float), list(success.index))


def mean_outcomes(
    episodes: pd.DataFrame, method: str, rounds: Iterable[int], temperature: float
) -> Outcomes:
    """Success and return of each seed and test task, averaged over rounds.

    Raises:
        UserError: a round has no test episodes of the arm at this temperature, or the rounds have
            different seeds.
    """
    test = episodes[episodes["panel"] == TEST]
    by_round = {number: outcomes(select(test, method, number, temperature)) for number in rounds}
    seeds = sorted({seed for played in by_round.values() for seed in played.seeds})
    for number, played in by_round.items():
        if played.seeds and played.seeds == seeds:
            continue
        lacking = [f", seed {seed}" for seed in seeds if seed not in played.seeds]
        raise UserError(
            f"{method}: no test episodes of round {number}{''.join(lacking[:1])} at temperature "
            f"{temperature:g}; the endpoint requires them"
        )
    return Outcomes(
        np.mean([played.success for played in by_round.values()], axis=0),
        np.mean([played.returns for played in by_round.values()], axis=0),
        seeds,
    )


def score_table(played: Outcomes, score: Score) -> np.ndarray:
    """The configured score, success or return, as a table [seeds, tasks]."""
    return played.success if score == "success" else played.returns


def mean_score(played: Outcomes, score: Score, level: float) -> Estimate:
    """Mean score with its interval."""
    interval = statistics.rate_interval if score == "success" else statistics.mean_interval
    return interval(score_table(played, score), level)
