"""`assign_all` checks an assigner's credit; messages name assigner, task and turn."""

import numpy as np
import pytest
from assigner_checks import make_group
from judge_cases import failures, group

from hgrpo.credit.base import CreditAssigner, assign_all, is_order_dependent
from hgrpo.errors import UserError

TURNS = 4


class Given(CreditAssigner):
    """An assigner that gives every group the same."""

    def __init__(self, credit):
        self.credit = credit

    def assign(self, group):
        return self.credit


class Together(Given):
    """One that is asked about all groups at once."""

    def assign_many(self, groups):
        return self.credit


GROUPS = [group(failures(2)), group(failures(2, 10))]
RIGHT = np.arange(TURNS, dtype=np.float64)
HOLE = np.array([0.0, 1.0, np.nan, np.inf])
WHO = "test_credit_base.Given: task task"


@pytest.mark.parametrize("row", [RIGHT, RIGHT.astype(np.float32), RIGHT.tolist(), range(TURNS)])
def test_credit_is_handed_on_as_float64(row):
    for credit in ([row, row], (row, row)):
        (first, second) = assign_all(Given(credit), GROUPS)
        for values in (*first, *second):
            assert values.dtype == np.float64
            assert values.tolist() == RIGHT.tolist()


@pytest.mark.parametrize(
    ("credit", "expected"),
    [
        ([RIGHT, HOLE], f"{WHO} rollout 2: the credit of turn 2 is nan"),
        (
            [RIGHT, np.append(RIGHT, 0.0)],
            f"{WHO} rollout 2: expected credit for 4 turns, got shape (5,)",
        ),
        (
            [RIGHT[:, None], RIGHT],
            f"{WHO} rollout 1: expected credit for 4 turns, got shape (4, 1)",
        ),
        ([RIGHT, ["a"] * TURNS], f"{WHO} rollout 2: expected an array of numbers as credit"),
        ([RIGHT, [True] * TURNS], f"{WHO} rollout 2: expected an array of numbers as credit"),
        ([RIGHT, [1e20] * TURNS], f"{WHO} rollout 2: the credit of turn 0 is 1e+20; its"),
        ([RIGHT], f"{WHO}: expected credit for 2 trajectories, got 1"),
        # If K = T, an array may have the turns first.
        (np.stack([RIGHT, RIGHT]), f"{WHO}: expected a list, not ndarray"),
    ],
)
def test_anything_else_is_named(credit, expected):
    with pytest.raises(UserError) as caught:
        assign_all(Given(credit), GROUPS)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_that_sees_all_groups_gives_credit_for_each():
    assert len(assign_all(Together([[RIGHT, RIGHT]] * 2), GROUPS)) == 2
    with pytest.raises(UserError, match="assign_many: expected credit for 2 groups, got 1"):
        assign_all(Together([[RIGHT, RIGHT]]), GROUPS)
    with pytest.raises(UserError, match="Together: task task rollout 11: expected credit for"):
        assign_all(Together([[RIGHT, RIGHT], [RIGHT[:3], RIGHT]]), GROUPS)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.turns.reverse(),
        lambda t: t.token_ids.append(1),
        lambda t: setattr(t.turns[0], "env_reward", 1.0),
        lambda t: setattr(t, "success", True),
        lambda t: setattr(t.turns[0], "state", "x"),
    ],
)
def test_an_assigner_that_changes_what_was_played_is_refused(change):
    class Changes(CreditAssigner):
        def assign(self, group):
            for trajectory in group.trajectories:
                change(trajectory)
            return [np.zeros(len(t.turns)) for t in group.trajectories]

    played = make_group([{"logprobs": [-1.0, -2.0]}, {}], [{"env_reward": 0.5}])
    with pytest.raises(UserError, match="task task: the assigner modified its input"):
        assign_all(Changes(), [played])


def neighbours(group, step):
    """Each trajectory gets the return of one beside it."""
    count = len(group.trajectories)
    rows = [group.trajectories[(k + step) % count] for k in range(count)]
    return [np.full(TURNS, t.env_return) for t in rows]


@pytest.mark.parametrize(
    ("credit", "depends"),
    [
        (lambda group: [np.full(TURNS, t.env_return) for t in group.trajectories], False),
        (lambda group: [np.full(TURNS, t.env_return) for t in reversed(group.trajectories)], True),
        (lambda group: [np.full(TURNS, group.trajectories[0].env_return)] * 3, True),
        (lambda group: neighbours(group, 1), True),
        (lambda group: neighbours(group, -1), True),
        (lambda group: [np.random.rand(TURNS) for _ in group.trajectories], True),
        # The order of a sum is rounding.
        (lambda group: [RIGHT + sum(t.env_return for t in group.trajectories)] * 3, False),
    ],
)
def test_credit_that_depends_on_the_order_of_trajectories_is_noticed(credit, depends):
    class Mine(CreditAssigner):
        def assign(self, group):
            return credit(group)

    turns = [[{}] * (TURNS - 1) + [{"env_reward": reward}] for reward in (0.1, 0.2, 0.3)]
    played = make_group(*turns)
    (credit_of_played,) = assign_all(Mine(), [played])
    assert is_order_dependent(Mine, played, credit_of_played) == depends


def test_an_assigner_without_a_method_is_refused_when_it_is_defined():
    with pytest.raises(TypeError, match="Nothing must override `assign` or `assign_many`"):
        type("Nothing", (CreditAssigner,), {})
