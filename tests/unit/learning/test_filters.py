import numpy as np
import pytest

from hgrpo.learning.advantages import blend, trajectory_advantages, turn_advantages
from hgrpo.learning.filters import is_dead, takes_part

FLOOR = 1e-6


def test_equal_returns_with_turn_signal_are_dead_to_the_guard_alone():
    returns = np.array([1.0, 1.0])
    a_traj = trajectory_advantages(returns, "std", FLOOR)
    a_turn = turn_advantages([np.array([1.0]), np.array([0.0])], "position", FLOOR)
    assert not is_dead(blend(0.5, a_traj, a_turn), returns, "skip")
    assert not is_dead(blend(0.5, a_traj, a_turn), returns, "keep")
    assert is_dead(blend(0.5, a_traj, a_turn), returns, "skip_equal_returns")
    assert is_dead(blend(1.0, a_traj, a_turn), returns, "skip")


@pytest.mark.parametrize(
    ("rule", "penalised", "part"),
    [
        ("skip", False, False),
        ("skip", True, True),
        ("skip_equal_returns", False, False),
        ("skip_equal_returns", True, False),
        ("keep", False, True),
    ],
)
def test_a_dead_group_takes_part_where_it_is_kept_or_the_penalty_speaks(rule, penalised, part):
    assert takes_part(True, rule, penalised) is part
    assert takes_part(False, rule, penalised)
