"""How the fits are drawn: from the model they start with, on the tasks held out."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from hgrpo.credit.turnrd.settings import Settings
from hgrpo.report.arms import Arm, Arms
from hgrpo.report.figures.turnrd import ALWAYS, ROUNDS, turnrd, turnrd_table

ARMS = Arms({"A": Arm("A", "A", True, Settings(), "#333333", "o", "-")}, "A")


@pytest.fixture
def logs():
    rows = [{"method": "A", "seed": 1, "round": number, "alpha_var": 0.1} for number in (2, 3)]
    return pd.DataFrame(rows).assign(**dict.fromkeys(set(ROUNDS) - {"alpha_var"}))


@pytest.fixture
def fits():
    """The second fit stopped after an epoch that did not help."""
    losses = {1: [0.5, 0.3, 0.2], 2: [0.2, 0.25]}
    return pd.DataFrame(
        {
            "method": "A",
            "seed": 1,
            "round": number,
            "epoch": epoch,
            "validation_loss": loss,
            "return_corr": None,
            "alpha_cf_corr": None,
        }
        for number, row in losses.items()
        for epoch, loss in enumerate(row, start=-1)
    )


def test_a_fit_is_shown_by_the_model_it_would_hand_on(logs, fits):
    table = turnrd_table(logs, fits, ["A"])
    mine = table[table["measure"] == "validation_loss"]
    assert mine["epoch"].tolist() == [0, 1, 2, 0, 1]
    assert mine["value"].tolist() == [0.5, 0.3, 0.2, 0.2, 0.2]


def test_a_seed_whose_fit_stopped_stays_in_the_mean(logs, fits):
    stopped = fits[(fits["round"] == 2)].assign(round=1, seed=2)  # 0.2, then 0.25
    table = turnrd_table(logs, pd.concat([fits, stopped]), ["A"])
    mine = table[(table["measure"] == "validation_loss") & (table["round"] == 1)]
    assert mine["value"].tolist() == pytest.approx([0.35, 0.25, 0.2])
    assert mine["n_seeds"].tolist() == [2, 2, 2]


def test_a_fit_is_drawn_from_its_round_to_the_next(logs, fits):
    drawing = turnrd(logs, fits, ARMS)
    ax = drawing.figure.axes[ALWAYS.index("validation_loss")]
    drawn = [line.get_xdata().tolist() for line in ax.lines if len(line.get_xdata())]
    assert drawn == [[1, 1.5, 2], [2, 3]]
    plt.close(drawing.figure)
