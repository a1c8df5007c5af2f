"""Vine on a game whose values are known, and what the controls do to a credit."""

import numpy as np
import pytest
from hall import TURN_CAP, hall_collector
from tiny_policy import hall_tasks, make_policy
from toy_round import imitate_random_doors

from hgrpo.credit.altered import AlterableSettings, alter
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.section import CreditConfig
from hgrpo.envs.base import Task
from hgrpo.trajectories.trajectory import Trajectory


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    """Plays a policy that opens doors at random, any of them again and again."""
    policy = make_policy(tmp_path_factory.mktemp("base"))
    imitate_random_doors(policy)
    return hall_collector(policy, capacity=64)


@pytest.fixture(scope="module")
def group(collector):
    return Group(collector.collect(hall_tasks(1), 8, ("test", 3))[0], ("test", 3, "hall"))


def test_a_turn_earns_what_it_changed_in_the_value(collector, group):
    # Some trajectory took more than one turn, so that an empty door is credited too.
    assert max(len(t.turns) for t in group.trajectories) > 1
    vine = make_assigner(CreditConfig(kind="vine", continuations=40), Context(collector=collector))
    rows = vine.assign(group)
    for row, trajectory in zip(rows, group.trajectories, strict=True):
        left = TURN_CAP - np.arange(len(trajectory.turns) + 1)
        # The chance to find the coin with so many doors left to open.
        values = 1 - (2 / 3) ** left.astype(float)
        values[-1] = trajectory.env_return
        np.testing.assert_allclose(row, np.diff(values), atol=0.35)
    counts = vine.report()
    assert counts["cf_branches"] == 40 * sum(len(t.turns) for t in group.trajectories)


def test_a_trajectorys_credit_sums_to_its_return_less_the_first_value(collector, group):
    settings = CreditConfig(kind="vine", continuations=3)
    rows = make_assigner(settings, Context(collector=collector)).assign(group)
    again = make_assigner(settings, Context(collector=collector)).assign(group)
    for row, same, trajectory in zip(rows, again, group.trajectories, strict=True):
        np.testing.assert_array_equal(row, same)
        first = trajectory.env_return - row.sum()
        assert first * 3 == pytest.approx(round(first * 3))


def test_several_groups_get_what_each_would_get_alone(collector, group):
    other = Group(collector.collect(hall_tasks(2)[1:], 3, ("test", 4))[0], ("test", 4, "other"))
    empty = Group([], ("test", 5, "none"))
    vine = make_assigner(CreditConfig(kind="vine"), Context(collector=collector))
    together = vine.assign_many([group, empty, other])
    assert [len(rows) for rows in together] == [8, 0, 3]
    for each, rows in zip([group, empty, other], together, strict=True):
        for row, alone in zip(rows, vine.assign(each), strict=True):
            np.testing.assert_array_equal(row, alone)


ROWS = [np.arange(5.0), np.array([3.0, -4.0]), np.zeros(0)]


def group_of(number):
    task = Task("t", "p", "h", "x")
    return Group([Trajectory(task, rollout) for rollout in range(number)], ("stream",))


def altered(**given):
    return alter(ROWS, AlterableSettings(**given), group_of(len(ROWS)))


def test_unaltered_credit_stays_as_it_is():
    assert altered() == ROWS


def test_shuffled_credit_keeps_each_trajectorys_values():
    rows = altered(shuffled=True)
    for row, before in zip(rows, ROWS, strict=True):
        assert sorted(row) == sorted(before)
    assert any(not np.array_equal(a, b) for a, b in zip(rows, ROWS, strict=True))
    assert AlterableSettings(shuffled=True).is_control
    assert not AlterableSettings().is_control


def test_flipped_credit_has_the_other_sign():
    for row, before in zip(altered(flipped=True), ROWS, strict=True):
        np.testing.assert_array_equal(row, -before)


@pytest.mark.parametrize("correlation", [0.25, 0.5, 0.75])
def test_noisy_credit_has_the_stated_correlation(correlation):
    true = [np.random.default_rng(k).exponential(size=4000) for k in range(10)]
    noisy = alter(true, AlterableSettings(correlation=correlation), group_of(len(true)))
    found = np.corrcoef(np.concatenate(true), np.concatenate(noisy))[0, 1]
    # The standard error of a correlation of 40,000 pairs is at most 0.005.
    assert found == pytest.approx(correlation, abs=0.025)
