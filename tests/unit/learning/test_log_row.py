"""Entries of a step's log row that describe its groups."""

from types import SimpleNamespace

import pytest

from hgrpo.learning.log_row import spread_row
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


def test_one_trajectory_has_no_spread():
    row = spread_row([group((3.0, True, 0))], TrainingConfig(rollouts_per_task=1))
    assert row == {"return_deviation": 0.0, "success_deviation": 0.0}
