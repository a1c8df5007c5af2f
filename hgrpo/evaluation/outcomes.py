"""Successes of one arm at one round and temperature, as a table of seeds and tasks."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from hgrpo.errors import UserError

GREEDY = 0.0
TEST, VALIDATION = "test", "validation"


@dataclass(frozen=True)
class Outcomes:
    """`success` is a table [seeds, tasks] of zeros and ones; both axes are sorted."""

    success: np.ndarray
    seeds: list[int]
    tasks: list[str]


def select(
    episodes: pd.DataFrame, method: str, round_index: int, temperature: float
) -> pd.DataFrame:
    """Episodes of one arm after one round at one temperature, on every panel."""
    return episodes[
        (episodes["method"] == method)
        & (episodes["round"] == round_index)
        & (episodes["temperature"] == temperature)
    ]


def outcomes(chosen: pd.DataFrame, method: str, temperature: float) -> Outcomes:
    """The table of episodes that differ in seed and task only.

    Raises:
        UserError: there are none.
    """
    if chosen.empty:
        raise UserError(f"{method}: no episodes at temperature {temperature:g} to compare")
    table = chosen.pivot(index="seed", columns="task_id", values="success").sort_index()
    return Outcomes(table.to_numpy(dtype=float), list(table.index), list(table.columns))
