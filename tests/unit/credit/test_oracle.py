"""The oracle's credit on chores, against the policy's choices worked out one by one."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_policy import make_policy

from hgrpo.agent.conversation import Conversation
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.errors import UserError
from hgrpo.games.base import Task
from hgrpo.games.kinds import load
from hgrpo.stages.sections import environment_settings
from hgrpo.trajectories.trajectory import Trajectory, Turn

SETTINGS = environment_settings(
    {
        "name": "chores",
        "turn_cap": 5,
        "chores": 4,
        "places": 3,
        "share": 0.5,
        "delay": 0.2,
        "panels": {"train": 1, "validation": 1, "test": 1},
    },
    "test",
)


class Collector:
    """What the oracle uses of a collector."""

    temperature = 1.0

    def __init__(self):
        self.make_env = load("chores").factory(SETTINGS, Path())


@pytest.fixture(scope="module")
def context(tmp_path_factory) -> Context:
    policy = make_policy(tmp_path_factory.mktemp("base"))
    return Context("chores", policy, Conversation(policy.tokenizer), collector=Collector())


@pytest.fixture(scope="module")
def group(context) -> Group:
    """Two trajectories of one game: all right; a wrong bag, then what is not admissible."""
    _, task = next(load("chores").make_tasks(SETTINGS, 0, Path(), Counter()))
    return Group(
        [
            played(context, task, lambda env, turn: env.right_command()),
            played(context, task, lambda env, turn: "x" if turn else wrong(env)),
        ],
        ("stream",),
    )


def wrong(env) -> str:
    return next(c for c in env.admissible_commands() if c != env.right_command())


def played(context: Context, task: Task, act) -> Trajectory:
    env, trajectory = context.collector.make_env(), Trajectory(task, 0)
    seen = env.reset(task)
    trajectory.token_ids.extend(context.conversation.opening(seen.text))
    for turn in range(5):
        action = act(env, turn)
        start = len(trajectory.token_ids)
        trajectory.token_ids.extend(context.conversation.reply(action))
        span = (start, len(trajectory.token_ids))
        step = env.step(action)
        trajectory.turns.append(
            Turn(seen.text, action, span, step.env_reward, step.progress, True, False)
        )
        seen = step.observation
        trajectory.token_ids.extend(context.conversation.observation(seen.text))
    return trajectory


def share_of(context: Context, trajectory: Trajectory, turn: int, commands: list[str]) -> list:
    """Probability of each command, read up to the token that tells it from all the others."""
    prefix = trajectory.token_ids[: trajectory.turns[turn].span[0]]
    replies = [context.conversation.reply(command) for command in commands]
    weights = []
    for reply in replies:
        weight, length = 1.0, 0
        while sum(other[:length] == reply[:length] for other in replies) > 1:
            tokens = torch.tensor([prefix + reply[:length]])
            with torch.no_grad():
                logits = context.policy.causal_lm(tokens).logits[0, -1].double()
            weight *= float(torch.softmax(logits, 0)[reply[length]])
            length += 1
        weights.append(weight)
    return [weight / sum(weights) for weight in weights]


def test_credit_is_the_choices_worth_less_the_policys_mean(context, group):
    rows = make_assigner(CreditConfig(kind="oracle"), context).assign(group)
    for row, trajectory in zip(rows, group.trajectories, strict=True):
        env = context.collector.make_env()
        env.reset(trajectory.task)
        for turn, credit in enumerate(row):
            worths, right = env.worths(), env.right_command()
            shares = share_of(context, trajectory, turn, list(worths))
            action = trajectory.turns[turn].action
            gain = max(worths.values())
            expected = gain * ((action == right) - shares[list(worths).index(right)])
            assert credit == pytest.approx(expected, abs=1e-5)
            assert bool(credit == 0) is (gain == 0)
            env.step(action)
    # The bag and two of the four chores count.
    assert np.count_nonzero(rows[0]) == 3
    assert (rows[0] >= 0).all() and (rows[1] <= 0).all()


def test_an_environment_that_knows_no_worths_says_so(context):
    other = Context("webshop", context.policy, context.conversation, collector=context.collector)
    assigner = make_assigner(CreditConfig(kind="oracle"), other)
    with pytest.raises(UserError, match="credit.kind 'oracle' requires `worths`"):
        assigner._worths(None)
    assert load("webshop").lacks("worths") and not load("chores").lacks("worths")


@pytest.mark.parametrize("value", [float("nan"), "0.5", None])
def test_a_worth_that_is_not_finite_is_named(context, group, value):
    def worths(env):
        return dict.fromkeys(env.admissible_commands(), value)

    oracle = make_assigner(CreditConfig(kind="oracle"), context)
    oracle._worths = worths
    task = group.trajectories[0].task.task_id
    with pytest.raises(UserError, match=rf"worths: task {task} turn 0: '.*' is {value!r};"):
        oracle.assign(group)
