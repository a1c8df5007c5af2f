"""For the test of an assigner: a group from a few lines, and what every assigner must keep to."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hgrpo.credit.base import CreditAssigner, Group, assign_all
from hgrpo.envs.base import Task
from hgrpo.trajectories.trajectory import Trajectory, Turn


def make_group(*trajectories: Sequence[Mapping]) -> Group:
    """A group of K trajectories. Each is a list of turns, and a turn maps fields of `Turn`.

    Fields that are left out get neutral values: one sampled token of probability 1, no reward, no
    progress, an admissible action without text. A trajectory succeeds if it is paid.
    """
    played = [Trajectory(Task("task", "", "", ""), k) for k in range(len(trajectories))]
    for trajectory, turns in zip(played, trajectories, strict=True):
        for given in turns:
            logprobs = given.get("logprobs", [0.0])
            token_ids = given.get("token_ids", [1] * len(logprobs))
            start = len(trajectory.token_ids) + 1  # after one token of the observation
            trajectory.token_ids += [0, *token_ids]
            span = (start, len(trajectory.token_ids))
            neutral = Turn("", "", span, 0.0, 0.0, True, False, token_ids, logprobs)
            trajectory.turns.append(replace(neutral, **given))
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
    backwards = Group(before.trajectories[::-1], before.stream)
    for other, step, why in ((before, 1, "a second call"), (backwards, -1, "another order")):
        (again,) = assign_all(assigner, [other])
        for first, second in zip(credit, again[::step], strict=True):
            np.testing.assert_allclose(second, first, err_msg=f"{why} gave other credit")
    return credit
