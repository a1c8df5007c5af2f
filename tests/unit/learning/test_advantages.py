import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgrpo.learning.advantages import (
    blend,
    is_dead,
    is_flat,
    takes_part,
    trajectory_advantages,
    turn_advantages,
)

FLOOR = 1e-6


@pytest.mark.parametrize(
    ("returns", "norm", "advantages"),
    [
        # Mean 1/4, population deviation sqrt(3) / 4.
        ([1.0, 0, 0, 0], "std", [3**0.5] + [-(3**-0.5)] * 3),
        # Mean 1.85, deviation of the sample 5.7.
        ([10.4, -1, -1, -1], "sample_std", [1.5] + [-0.5] * 3),
        ([1.0, 0, 0, 0], "mean", [0.75] + [-0.25] * 3),
        ([0.0, 1e-9], "std", [-5e-4, 5e-4]),
    ],
)
def test_trajectory_advantages_by_hand(returns, norm, advantages):
    made = trajectory_advantages(np.array(returns), norm, FLOOR)
    assert made == pytest.approx(advantages)


@pytest.mark.parametrize("returns", [[3.0], [3.0, 3.0], [0.1] * 3])
def test_one_return_or_equal_ones_have_no_advantage(returns):
    for norm in ("std", "sample_std", "mean"):
        assert not trajectory_advantages(np.array(returns), norm, FLOOR).any()


def test_position_norm_compares_only_those_who_reached_the_position():
    credit = [np.array([1.0, 5.0]), np.array([3.0])]
    first, second = turn_advantages(credit, "position", FLOOR)
    # turn 0: mean 2, deviation 1; turn 1: one trajectory, nothing to compare with
    assert first.tolist() == [-1.0, 0.0]
    assert second.tolist() == [1.0]


def test_group_norm_uses_all_turns():
    credit = [np.array([0.0, 1.0]), np.array([2.0])]
    first, second = turn_advantages(credit, "group", FLOOR)
    deviation = (2 / 3) ** 0.5
    assert first == pytest.approx([-1 / deviation, 0.0])
    assert second == pytest.approx([1 / deviation])


def test_blend_mixes_by_alpha():
    mixed = blend(0.25, np.array([4.0]), [np.array([0.0, 8.0])])
    assert mixed[0].tolist() == [1.0, 7.0]


def test_alpha_one_ignores_even_broken_credit():
    mixed = blend(1.0, np.array([0.1]), [np.array([np.nan, np.inf])])
    assert mixed[0].tolist() == [0.1, 0.1]


returns = st.lists(st.floats(-10, 10), min_size=1, max_size=12).map(np.array)
groups = st.lists(
    st.lists(st.floats(-5, 5), min_size=1, max_size=6).map(np.array),
    min_size=1,
    max_size=6,
)


@given(returns)
def test_trajectory_advantages_sum_to_zero_and_keep_order(values):
    advantages = trajectory_advantages(values, "std", FLOOR)
    assert abs(advantages.sum()) < 1e-6 * max(1, np.abs(advantages).max()) * len(values)
    order = np.argsort(values, kind="stable")
    assert np.all(np.diff(advantages[order]) >= -1e-12)


@given(groups, st.sampled_from(["position", "group", "none"]), st.randoms())
def test_turn_advantages_follow_a_permutation_of_the_group(credit, norm, random):
    order = list(range(len(credit)))
    random.shuffle(order)
    straight = turn_advantages(credit, norm, FLOOR)
    permuted = turn_advantages([credit[i] for i in order], norm, FLOOR)
    for place, index in enumerate(order):
        assert permuted[place] == pytest.approx(straight[index], rel=1e-6, abs=1e-6)


@given(groups, st.sampled_from(["position", "group", "none"]))
def test_turn_advantages_keep_shapes_and_are_finite(credit, norm):
    result = turn_advantages(credit, norm, FLOOR)
    assert [len(row) for row in result] == [len(row) for row in credit]
    assert all(np.isfinite(row).all() for row in result)


@pytest.mark.parametrize(
    ("credit", "flat"),
    [
        ([[0.0, 0.0], [0.0]], True),
        ([[2.0, 2.0, 2.0], [-1.0, -1.0]], True),
        ([[0.1 * 3, 0.3], [0.3, 0.3]], True),
        ([[1.0, 1.0 + 5e-7], [1.0, 1.0]], True),
        ([[1.0, 1.0 + 5e-6], [1.0, 1.0]], False),
        ([[1e-9, 2e-9], [0.0, 0.0]], False),
        ([[0.0, 0.0], [0.0, 1.0]], False),
        # Of trajectories of one turn, only the comparison with each other can tell anything.
        ([[1.0], [1.0]], True),
        ([[1.0], [2.0]], False),
        ([[1.0], [2.0], [3.0, 3.0]], True),
        ([], True),
        ([[], []], True),
    ],
)
def test_flat_credit_by_hand(credit, flat):
    assert is_flat([np.array(row, dtype=float) for row in credit]) is flat


def test_equal_returns_with_turn_signal_are_dead_to_the_guard_alone():
    returns = np.array([1.0, 1.0])
    a_traj = trajectory_advantages(returns, "std", FLOOR)
    a_turn = turn_advantages([np.array([1.0]), np.array([0.0])], "position", FLOOR)
    assert not is_dead(blend(0.5, a_traj, a_turn), returns, "skip")
    assert is_dead(blend(0.5, a_traj, a_turn), returns, "skip_equal_returns")
    assert is_dead(blend(1.0, a_traj, a_turn), returns, "skip")


@pytest.mark.parametrize(
    ("rule", "penalised", "part"),
    [
        ("skip", False, False),
        ("skip", True, True),
        ("skip_equal_returns", True, False),
        ("keep", False, True),
    ],
)
def test_a_dead_group_takes_part_if_it_is_kept_or_penalised(rule, penalised, part):
    assert takes_part(True, rule, penalised) is part
    assert takes_part(False, rule, penalised)
