"""Scaling a batch's advantages."""

import numpy as np
import pytest

from hgrpo.credit.base import Group
from hgrpo.envs.base import Task
from hgrpo.learning.batch import scale_advantages
from hgrpo.trajectories.trajectory import Trajectory, Turn


def group(*rows):
    trajectories = []
    for number, row in enumerate(rows):
        trajectory = Trajectory(Task("t", "p", "h", "x"), number)
        for advantage in row:
            trajectory.turns.append(
                Turn("", "", (0, 1), 0.0, 0.0, True, False, advantage=float(advantage))
            )
        trajectories.append(trajectory)
    return Group(trajectories, ("stream",))


def advantages(groups):
    return [turn.advantage for g in groups for t in g.trajectories for turn in t.turns]


def test_advantages_are_scaled_together_to_the_given_root_mean_square():
    groups = [group([3.0, 0.0], [-1.0]), group([2.0])]
    # The mean square is (9 + 0 + 1 + 4) / 4 = 3.5.
    factor = scale_advantages([t for each in groups for t in each.trajectories], 0.5)
    assert factor == pytest.approx(0.5 / 3.5**0.5)
    scaled = np.array(advantages(groups))
    np.testing.assert_allclose(scaled, np.array([3.0, 0.0, -1.0, 2.0]) * factor)
    assert np.sqrt(np.mean(scaled**2)) == pytest.approx(0.5)


@pytest.mark.parametrize("rows", [[], [[0.0, 0.0]]])
def test_without_any_advantage_nothing_is_scaled(rows):
    groups = [group(*rows)] if rows else []
    assert scale_advantages([t for each in groups for t in each.trajectories], 0.5) == 1.0
    assert set(advantages(groups)) <= {0.0}
