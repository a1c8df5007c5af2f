"""Rows of the page's credit tables: one per turn of a trajectory, with a cell per arm."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from hgrpo.report import words
from hgrpo.report.arms import Arms
from hgrpo.report.figures.credit import OWN, shades
from hgrpo.report.logs import TRAJECTORY

_TEXTS = ["goal", "observation", "action"]
OBSERVATION = 400  # maximum length of an observation shown under an action, in characters


def credit_pictures(folder: Path, arms: Arms) -> list[dict]:
    """Tables of trajectories from the first batch: one row per turn, one column per arm."""
    pictures = []
    for picture in _trajectories(folder / "credit.csv", TRAJECTORY):
        names = [name for name in arms.trained if name in set(picture["method"])]
        labels = [arms.label(name) for name in names]
        views = []
        for kind in ("credit", "advantage"):
            scaled = picture.assign(shade=shades(picture, kind)).set_index("method")
            cells = [
                _cells(turn.loc[names, kind], turn.loc[names, "shade"])
                for _, turn in scaled.groupby("turn")
            ]
            views.append({"columns": labels, "cells": cells})
        pictures.append(_picture(picture) | {"credit": views[0], "advantage": views[1]})
    return pictures


def own_pictures(folder: Path, arms: Arms) -> list[dict]:
    """Tables of trajectories from the last round of arms with learned credit: one row per turn."""
    pictures = []
    for picture in _trajectories(folder / "credit_last_round.csv", ["method", *TRAJECTORY]):
        columns = [name for name in OWN if picture[name].fillna(0).any() or name == "credit"]
        shade = picture[columns] / picture[columns].abs().max().where(lambda most: most > 0, 1)
        cells = [
            _cells(picture.loc[turn, columns], shade.loc[turn])
            for turn in picture.sort_values("turn").index
        ]
        pictures.append(
            _picture(picture)
            | {
                "arm": arms[picture["method"].iloc[0]],
                "round": picture["round"].iloc[0],
                "credit": {"columns": columns, "cells": cells},
            }
        )
    return pictures


def _trajectories(path: Path, keys: list[str]) -> list[pd.DataFrame]:
    """One table per trajectory of a CSV file of credit; empty if the file does not exist."""
    if not path.exists():
        return []
    # Read empty entries as missing values only in numeric columns, because a text may be empty.
    numbers = pd.read_csv(path, nrows=0).columns.difference(_TEXTS)
    table = pd.read_csv(path, keep_default_na=False, na_values={name: [""] for name in numbers})
    return [picture for _, picture in table.groupby(keys, sort=False)]


def _picture(picture: pd.DataFrame) -> dict:
    turns = picture.drop_duplicates("turn").sort_values("turn")
    return {
        "task_id": turns["task_id"].iloc[0],
        "rollout": turns["rollout"].iloc[0],
        "goal": turns["goal"].iloc[0],
        "paid": float(turns["env_return"].iloc[0]),
        "turns": [
            {
                "number": index + 1,
                "action": turn.action or "(empty)",
                "observation": _excerpt(turn.observation) if index else "",
                "admissible": str(turn.admissible) == "True",
            }
            for index, turn in enumerate(turns.itertuples())
        ],
    }


def _cells(values: Iterable[float], shade: Iterable[float]) -> list[dict]:
    """Cells of a row, with the value as text and the opacity of the background colour (0 to 0.6).

    A cell is empty if dynamic sampling excluded the turn, which then has no advantage.
    """
    return [
        {"text": _signed(value), "shade": round(0.6 * abs(float(dark)), 3), "up": value > 0}
        if pd.notna(value)
        else {"text": "", "shade": 0.0, "up": False}
        for value, dark in zip(values, shade, strict=True)
    ]


def _signed(value: float) -> str:
    """Format with a sign and two decimals; 0 is "0", and values that round to 0 are "0.00"."""
    text = f"{value:+.2f}".replace("-", words.MINUS)
    return "0" if value == 0 else text[1:] if text[1:] == "0.00" else text


def _excerpt(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= OBSERVATION else text[: OBSERVATION - 1].rstrip() + "…"
