"""Vine on a game of known values, and altered credit."""

import numpy as np
import pytest
from hall import TURN_CAP
from tiny_policy import hall_tasks

from hgrpo.credit.altered import AlterableSettings, alter
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.games.base import Task
from hgrpo.trajectories.trajectory import Trajectory, Turn


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


def altered(**settings):
    return alter(ROWS, AlterableSettings(**settings), group_of(len(ROWS)))


def test_shuffled_credit_keeps_each_trajectorys_values():
    rows = altered(shuffled=True)
    for row, before in zip(rows, ROWS, strict=True):
        assert sorted(row) == sorted(before)
    assert any(not np.array_equal(a, b) for a, b in zip(rows, ROWS, strict=True))
    assert AlterableSettings(shuffled=True).is_control
    assert not AlterableSettings().is_control


@pytest.mark.parametrize("correlation", [0.25, 0.5, 0.75])
def test_noisy_credit_has_the_stated_correlation(correlation):
    true = [np.random.default_rng(k).exponential(size=4000) for k in range(10)]
    noisy = alter(true, AlterableSettings(correlation=correlation), group_of(len(true)))
    measured = np.corrcoef(np.concatenate(true), np.concatenate(noisy))[0, 1]
    # The standard error of a correlation of 40,000 pairs is at most 0.005.
    assert measured == pytest.approx(correlation, abs=0.025)


def visits(texts, seed=11, step=0, task="t"):
    """A group whose k-th rollout takes the turns texts[k], as (observation, action)."""
    trajectories = []
    for k, row in enumerate(texts):
        trajectory = Trajectory(Task(task, "p", "h", "x"), k)
        trajectory.turns += [Turn(seen, act, (0, 1), 0.0, 0.0, True, False) for seen, act in row]
        trajectories.append(trajectory)
    return Group(trajectories, ("train", seed, 1, step, task))


def noise_of(group, credit, noise):
    settings = AlterableSettings(correlation=0.5, noise=noise)
    spread = np.concatenate(credit).std() * np.sqrt(3)
    return [
        (row - before) / spread
        for row, before in zip(alter(credit, settings, group), credit, strict=True)
    ]


def test_fixed_noise_is_that_of_the_turn_wherever_a_run_meets_it():
    texts = [[("a", "x"), ("b", "x"), ("a", "x")], [("a", "y"), ("a", "x")]]
    first = noise_of(visits(texts), [np.array([1.0, 2, 3]), np.array([4.0, 0])], "fixed")
    assert first[0][0] == pytest.approx(first[0][2]) == pytest.approx(first[1][1])
    assert len({round(value, 6) for value in np.concatenate(first)}) == 3
    later = visits(texts[::-1], step=5, task="u")
    again = noise_of(later, [np.array([9.0, 0]), np.array([1.0, 1, 1])], "fixed")
    np.testing.assert_allclose(again[1], first[0])
    other = noise_of(visits(texts, seed=23), [np.arange(3.0), np.arange(2.0)], "fixed")
    assert not np.allclose(other[0], first[0])
    white = noise_of(visits(texts), [np.array([1.0, 2, 3]), np.array([4.0, 0])], "white")
    assert len({round(value, 6) for value in np.concatenate(white)}) == 5


def test_fixed_noise_has_the_stated_correlation_and_does_not_average_out():
    texts = [[(str(turn), str((turn + k) % 6)) for turn in range(600)] for k in range(8)]
    credit = [np.random.default_rng(k).exponential(size=600) for k in range(8)]
    settings = AlterableSettings(correlation=0.5, noise="fixed")
    rows = [alter(credit, settings, visits(texts, step=step)) for step in range(2)]
    measured = np.corrcoef(np.concatenate(credit), np.concatenate(rows[0]))[0, 1]
    assert measured == pytest.approx(0.5, abs=0.05)
    np.testing.assert_array_equal(rows[0], rows[1])


def test_flipped_credit_has_the_other_sign():
    for row, before in zip(altered(flipped=True), ROWS, strict=True):
        np.testing.assert_array_equal(row, -before)
