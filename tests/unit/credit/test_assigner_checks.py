"""`check_assigner` and `make_group`, the helpers for the test of a new assigner."""

import numpy as np
import pytest
from assigner_checks import check_assigner, make_group

from hgrpo.credit.base import CreditAssigner
from hgrpo.credit.progress import ProgressCredit, Settings, progress
from hgrpo.errors import UserError


def group():
    return make_group(
        [{"action": "go", "progress": 0.5}, {"logprobs": [-1.0, -2.0], "env_reward": 1.0}],
        [{"observation": "a hall", "progress": 0.25}],
    )


class Assigner(CreditAssigner):
    def __init__(self, credit):
        self._credit = credit

    def assign(self, group):
        return self._credit(group)


def test_a_group_is_made_of_what_matters():
    first, second = group().trajectories
    assert (first.rollout, first.success, first.env_return) == (0, True, 1.0)
    assert (second.rollout, second.success) == (1, False)
    assert [turn.action for turn in first.turns] == ["go", ""]
    for turn in first.turns:
        assert first.token_ids[slice(*turn.span)] == turn.token_ids
        assert len(turn.token_ids) == len(turn.logprobs)
    assert [turn.logprobs for turn in first.turns] == [[0.0], [-1.0, -2.0]]
    with pytest.raises(TypeError, match="reward"):
        make_group([{"reward": 1.0}])


def test_a_sound_assigner_passes_and_its_credit_comes_back():
    first, second = check_assigner(ProgressCredit(Settings()), group())
    np.testing.assert_array_equal(first, [0.5, 0.0])
    np.testing.assert_array_equal(second, [0.25])


def changes_the_group(group):
    for trajectory in group.trajectories:
        for turn in trajectory.turns:
            turn.state = "elsewhere"
    return progress(group)


def counts_calls(group, calls=[]):  # noqa: B006
    calls.append(0)
    return [np.full(len(t.turns), len(calls)) for t in group.trajectories]


def follows_the_place(group):
    return [np.full(len(t.turns), place) for place, t in enumerate(group.trajectories)]


@pytest.mark.parametrize(
    ("credit", "error", "message"),
    [
        (changes_the_group, UserError, "the assigner modified its input"),
        (counts_calls, AssertionError, "a second call"),
        (follows_the_place, AssertionError, "another order"),
        (lambda group: [np.zeros(1)] * 2, UserError, "rollout 0: expected credit for"),
        (
            lambda group: [t.turns and [np.nan] * len(t.turns) for t in group.trajectories],
            UserError,
            "the credit of turn 0 is nan",
        ),
    ],
)
def test_an_unsound_assigner_is_refused(credit, error, message):
    with pytest.raises(error, match=message):
        check_assigner(Assigner(credit), group())
