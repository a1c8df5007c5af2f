"""Outcomes of one arm at one round and temperature, as tables of seeds and tasks."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

GREEDY = 0.0
TEST, VALIDATION = "test", "validation"


@dataclass(frozen=True)
class Outcomes:
    """Success (zeros and ones) and returns as tables [seeds, tasks]; both axes are sorted."""

    success: np.ndarray
    returns: np.ndarray
    seeds: list[int]


def select(
    episodes: pd.DataFrame, method: str, round_index: int, temperature: float
) -> pd.DataFrame:
    """Episodes of one arm after one round at one temperature, on every panel."""
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
