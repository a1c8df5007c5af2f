"""Rows of the report's tables of credit, made from the figure's CSV file."""

from pathlib import Path

import pandas as pd

from hgrpo.credit.settings import CreditSettings
from hgrpo.report import words
from hgrpo.report.arms import Arm, Arms
from hgrpo.report.credit_rows import credit_pictures


def test_a_turn_left_out_of_the_update_has_an_empty_advantage(tmp_path: Path) -> None:
    """A filter leaves turns out, so the file has empty numbers; empty texts stay texts."""
    turns = {
        "task_id": "train-1",
        "rollout": 0,
        "goal": "NA",
        "env_return": 1.0,
        "turn": [0, 1, 0, 1],
        "observation": "",
        "action": ["NA", "", "NA", ""],
        "admissible": True,
        "method": ["all", "all", "filtered", "filtered"],
        "credit": [0.25, 0.75, 0.25, 0.75],
        "advantage": [-0.5, 1.0, None, None],
    }
    pd.DataFrame(turns).to_csv(tmp_path / "credit.csv", index=False)
    by_name = {
        name: Arm(name, name, True, CreditSettings(), "#000000", "s", "-")
        for name in ("all", "filtered")
    }

    [picture] = credit_pictures(tmp_path, Arms(by_name, reference="all"))

    assert picture["goal"] == "NA"
    assert [turn["action"] for turn in picture["turns"]] == ["NA", "(empty)"]
    texts = [[cell["text"] for cell in row] for row in picture["advantage"]["cells"]]
    assert texts == [[f"{words.MINUS}0.50", ""], ["+1.00", ""]]
    assert [[cell["text"] for cell in row] for row in picture["credit"]["cells"]] == [
        ["+0.25", "+0.25"],
        ["+0.75", "+0.75"],
    ]
