"""For the test of an assigner: a group from a few lines, and what every assigner must keep to."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hgrpo.credit.base import CreditAssigner, Group, assign_all, is_order_dependent
from hgrpo.games.base import Task
from hgrpo.trajectories.trajectory import Trajectory, Turn


def make_group(*trajectories: Sequence[Mapping]) -> Group:
    """A group of K trajectories. Each is a list of turns, and a turn maps fields of `Turn`.

    Fields that are left out get neutral values: one sampled token of probability 1, no reward, no
    progress, an admissible action without text. A trajectory succeeds if it is paid.
    """
    played = [Trajectory(Task("task", "", "", ""), k) for k in range(len(trajectories))]
    for trajectory, turns in zip(played, trajectories, strict=True):
        for values in turns:
            logprobs = values.get("logprobs", [0.0])
            token_ids = values.get("token_ids", [1] * len(logprobs))
            start = len(trajectory.token_ids) + 1  # after one token of the observation
            trajectory.token_ids += [0, *token_ids]
            span = (start, len(trajectory.token_ids))
            neutral = Turn("", "", span, 0.0, 0.0, True, False, token_ids, logprobs)
            trajectory.turns.append(replace(neutral, **values))
        trajectory.success = trajectory.env_return > 0
    return Group(played, ("test",))


def check_assigner(assigner: CreditAssigner, group: Group) -> list[np.ndarray]:
    """Credit of the group, K float64 arrays [T_k], after checks that training relies on.

    Raises:
        UserError: the credit is not one finite number for every turn.
        AssertionError: `assign` changes the group, gives other credit in a second call, or gives a
            trajectory other credit if the trajectories stand in another order.
    """
    before = copy.deepcopy(group)
    (credit,) = assign_all(assigner, [group])
    assert repr(group) == repr(before), "assign changed the group"
    (again,) = assign_all(assigner, [before])
    for first, second in zip(credit, again, strict=True):
        np.testing.assert_allclose(second, first, err_msg="a second call gave other credit")
    # Of two trajectories, the other one cannot be told from the next one.
    three = replace(
        before, trajectories=[*before.trajectories, copy.deepcopy(before.trajectories[0])]
    )
    (credit_of_three,) = assign_all(assigner, [three])
    message = "another order gave other credit"
    assert not is_order_dependent(lambda: assigner, three, credit_of_three), message
    return credit
