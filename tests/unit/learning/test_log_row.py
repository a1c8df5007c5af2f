"""Entries of a step's log row that describe its groups."""

from types import SimpleNamespace

import numpy as np
import pytest
from assigner_checks import make_group

from hgrpo.learning.batch import group_advantages
from hgrpo.learning.log_row import advantage_row, spread_row
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig


def group(*played):
    """Trajectories of two turns, from (return, success, inadmissible turns)."""
    return [
        SimpleNamespace(env_return=paid, success=won, inadmissible=wrong, turns=[None, None])
        for paid, won, wrong in played
    ]


def test_spreads_within_groups_by_hand():
    groups = [group((10.0, True, 0), (0.0, False, 0)), group((1.0, False, 0), (1.0, False, 0))]
    row = spread_row(groups, TrainingConfig())
    assert row["return_deviation"] == pytest.approx(10 / 2**0.5 / 2)
    assert row["success_deviation"] == pytest.approx(1 / 2**0.5 / 2)


def test_penalties_make_failures_differ_and_successes_show_it():
    failed = [group((-1.0, False, 0), (-0.5, False, 0))]
    row = spread_row(failed, TrainingConfig())
    assert row["return_deviation"] > 0 and row["success_deviation"] == 0
    equal = [group((0.0, False, 2), (0.0, False, 0))]
    assert spread_row(equal, TrainingConfig())["return_deviation"] == 0
    assert spread_row(equal, TrainingConfig(invalid_action_penalty=1.0))["return_deviation"] > 0


@pytest.mark.parametrize(
    ("norm", "credit", "flat"),
    [
        ("position", [[0, 1, 0], [0, 0, 0]], 0),
        ("position", [[1, 1, 1], [1, 1, 1]], 1),
        ("none", [[5, 5, 5], [2, 2, 2]], 1),
        # Credit that follows from the turn's number alone is 0 after `position`, and not after
        # `group`; a trajectory's own number beside it is all that `position` leaves.
        ("position", [[1, 2, 3], [1, 2, 3]], 1),
        ("position", [[1, 2, 3], [2, 3, 4]], 1),
        ("group", [[1, 2, 3], [1, 2, 3]], 0),
    ],
)
def test_groups_whose_credit_tells_no_turn_from_another_are_counted(norm, credit, flat):
    group = make_group([{}] * 3, [{}, {}, {"env_reward": 1.0}])
    method = MethodConfig(
        name="m", alpha=0.5, turn_norm=norm, credit={"kind": "progress"}, group_norm="mean"
    )
    rows = [np.array(row, dtype=float) for row in credit]
    made = group_advantages(group, rows, method, TrainingConfig())
    row = advantage_row([group.trajectories] * 2, [made] * 2)
    assert row["flat_credit_groups"] == 2 * flat
    assert (row["turn_share"] < 1e-12) == bool(flat)
