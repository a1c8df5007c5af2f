"""Advantages of credit as training would make them."""

import numpy as np
import pytest

from hgrpo.credit.base import Group
from hgrpo.credit.kinds import CreditConfig
from hgrpo.evaluation.truth.update import update_advantages
from hgrpo.evaluation.truth.update_settings import ArmUpdate
from hgrpo.games.base import Task
from hgrpo.learning.method import MethodConfig
from hgrpo.learning.settings import TrainingConfig
from hgrpo.trajectories.trajectory import Trajectory, Turn


def group(name, *rewards):
    """Trajectories with the given rewards of their turns."""
    trajectories = []
    for rollout, paid in enumerate(rewards):
        turns = [Turn("", "go", (0, 1), each, 0.0, True, False) for each in paid]
        trajectories.append(Trajectory(Task(name, "p", name, "x"), rollout, turns=turns))
    return Group(trajectories, (name,))


GROUPS = [group("a", [0, 1], [0, 0, 0]), group("b", [1], [1])]
CREDIT = np.array([1.0, 3, 1, 5, 2, 1, -1])


def update(training=(), **method):
    section = {"name": "m", "credit": CreditConfig(kind="progress"), "alpha": 0.5} | method
    return ArmUpdate(method=MethodConfig(**section), training=TrainingConfig(**dict(training)))


def test_the_blend_by_hand():
    # Returns 1 and 0 give 1 and -1; equal returns give 0. Credit of turn 1 is equal in group a, of
    # turn 2 it is 3 and 5, and turn 3 was reached once.
    advantages = update_advantages(CREDIT, GROUPS, update())
    np.testing.assert_allclose(advantages, [0.5, 0.0, -0.5, 0.0, -0.5, 0.5, -0.5])


def test_a_group_that_takes_no_part_has_no_advantage():
    skipped = update(dead_groups="skip_equal_returns")
    assert update_advantages(CREDIT, GROUPS, skipped)[5:].tolist() == [0, 0]


def test_groups_without_credit_stay_unknown():
    credit = np.where(np.arange(7) < 5, np.nan, CREDIT)
    advantages = update_advantages(credit, GROUPS, update())
    assert np.isnan(advantages[:5]).all() and advantages[5:].tolist() == [0.5, -0.5]


def test_the_penalty_enters_the_trajectorys_advantage():
    GROUPS[1].trajectories[0].turns[0].admissible = False
    advantages = update_advantages(CREDIT, GROUPS, update({"invalid_action_penalty": 0.5}))
    GROUPS[1].trajectories[0].turns[0].admissible = True
    assert advantages[5:] == pytest.approx([0.0, 0.0])
