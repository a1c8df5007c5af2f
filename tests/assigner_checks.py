"""For tests of a method: a group from a few lines, and checks that every assigner must pass."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hgrpo.credit.base import CreditAssigner, Group, assign_all
from hgrpo.envs.base import Task
from hgrpo.trajectories.trajectory import Trajectory, Turn


def make_group(*trajectories: Sequence[Mapping]) -> Group:
    """A group of K trajectories, each a list of turns with the fields of `Turn` that matter.

    Other fields get neutral values: one sampled token of probability 1, no reward, no progress. A
    trajectory succeeds if it is paid.
    """
    played = [Trajectory(Task("task", "", "", ""), k) for k in range(len(trajectories))]
    for trajectory, turns in zip(played, trajectories, strict=True):
        for given in turns:
            logprobs = given.get("logprobs", [0.0])
            token_ids = given.get("token_ids", [1] * len(logprobs))
            start = len(trajectory.token_ids) + 1  # one token of the observation stands before it
            trajectory.token_ids += [0, *token_ids]
            span = (start, len(trajectory.token_ids))
            neutral = Turn("", "", span, 0.0, 0.0, True, False, token_ids, logprobs)
            trajectory.turns.append(replace(neutral, **given))
        trajectory.success = trajectory.env_return > 0
    return Group(played, ("test",))


def check_assigner(assigner: CreditAssigner, group: Group) -> list[np.ndarray]:
    """Credit of the group, K arrays [T_k], if the assigner keeps to what training relies on.

    Raises:
        UserError: the credit is not one finite number for every turn.
        AssertionError: it changed the group, gave other credit when asked again, or gave another
            trajectory's credit after a change of their order.
    """
    before = copy.deepcopy(group)
    (credit,) = assign_all(assigner, [group])
    assert repr(group) == repr(before), "assign changed the group"
    backwards = Group(before.trajectories[::-1], before.stream)
    for other, order in ((before, 1), (backwards, -1)):
        (again,) = assign_all(assigner, [other])
        for first, second in zip(credit, again[::order], strict=True):
            np.testing.assert_allclose(second, first, err_msg=f"credit of {other.stream} differs")
    return credit
