"""Scaling a batch's advantages."""

import numpy as np
import pytest

from hgrpo.games.base import Task
from hgrpo.learning.batch import GroupAdvantages, scale_advantages
from hgrpo.learning.chosen import Chosen, scale_living
from hgrpo.trajectories.trajectory import Trajectory, Turn


def played(*rows):
    """Trajectories of one turn for each advantage."""
    return [
        Trajectory(
            Task("t", "p", "h", "x"),
            number,
            turns=[Turn("", "", (0, 1), 0.0, 0.0, True, False, advantage=float(a)) for a in row],
        )
        for number, row in enumerate(rows)
    ]


def advantages(trajectories):
    return [turn.advantage for t in trajectories for turn in t.turns]


def test_advantages_are_scaled_together_to_the_root_mean_square():
    trajectories = played([3.0, 0.0], [-1.0], [2.0])
    # The mean square is (9 + 0 + 1 + 4) / 4 = 3.5.
    factor = scale_advantages(trajectories, 0.5)
    assert factor == pytest.approx(0.5 / 3.5**0.5)
    assert advantages(trajectories) == pytest.approx([3 * factor, 0, -factor, 2 * factor])


@pytest.mark.parametrize("rows", [[], [[0.0, 0.0]]])
def test_without_any_advantage_nothing_is_scaled(rows):
    trajectories = played(*rows)
    assert scale_advantages(trajectories, 0.5) == 1.0
    assert set(advantages(trajectories)) <= {0.0}


def test_only_chosen_trajectories_of_living_groups_set_the_scale():
    groups = [played([3.0], [-1.0]), played([0.0], [0.0])]
    made = [GroupAdvantages(np.zeros(2), [], dead, False) for dead in (False, True)]
    masks = [np.array([True, False]), np.array([True, True])]
    assert scale_living(groups, made, Chosen(masks, np.ones(2), False, {}), 1.5) == 0.5
