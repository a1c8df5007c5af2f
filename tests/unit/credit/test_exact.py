"""The exact credit of chores, against the sum over every way to play on."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tiny_policy import make_policy

from hgrpo.agent.conversation import Conversation
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.exact import Values
from hgrpo.credit.kinds import CreditConfig
from hgrpo.credit.oracle import command_shares
from hgrpo.errors import UserError
from hgrpo.games.kinds import load
from hgrpo.games.streams import generator
from hgrpo.stages.sections import environment_settings
from hgrpo.trajectories.trajectory import Trajectory, Turn

CAP = 5
GAMES = {
    "binary": {"verdict": "binary", "share": 0.75},
    "graded": {"delay": 0.3, "share": 0.5},
    "all": {"verdict": "binary", "delay": 0.3, "distractor": 0.4, "may_leave": True, "share": 0.5},
}


def world(**changes):
    keys = {"name": "chores", "turn_cap": CAP, "chores": 4, "places": 3, "kinds": 9}
    panels = {"train": 1, "validation": 1, "test": 1}
    return environment_settings(keys | {"panels": panels} | changes, "test")


def first_state(settings):
    _, task = next(load("chores").make_tasks(settings, 0, Path(), Counter()))
    env = load("chores").factory(settings, Path())()
    seen = env.reset(task)
    return env, task, seen


def some_policy(question: object, commands: list[str]) -> dict[str, float]:
    weights = generator("test-exact", str(question)).random(len(commands)) ** 2
    return dict(zip(commands, (weights / weights.sum()).tolist(), strict=True))


def to_go(env, action: str, turns: int, policy) -> float:
    """The sum over all sequences of commands that may follow, with nothing remembered."""
    after = env.fork()
    step = after.step(action)
    total = step.env_reward
    if not step.done and turns > 1:
        for command, share in policy(after).items():
            total += share * to_go(after, command, turns - 1, policy)
    return total


@pytest.mark.parametrize("turns", [5, 4, 3])
@pytest.mark.parametrize("game", GAMES)
def test_values_are_the_sum_over_every_way_to_play_on(game, turns):
    env, _, _ = first_state(world(**GAMES[game]))
    state, reference = load("chores").exact_state, {}

    def policy(at):
        question = state(at)[0]
        return reference.setdefault(question, some_policy(question, at.admissible_commands()))

    expected = {
        action: to_go(env, action, turns, policy) for action in [*env.admissible_commands(), "x"]
    }
    shares = {question: np.array([*known.values()]) for question, known in reference.items()}
    values = Values(state, shares)
    for action, value in expected.items():
        assert values.of_action(env, action, turns) == pytest.approx(value, abs=1e-9)
    # Fewer turns than questions leave no verdict, unless the agent leaves.
    questions = 4 + ("delay" in GAMES[game])
    assert any(expected.values()) is (turns >= questions or game == "all")


def shares_of(env, right: float) -> np.ndarray:
    """The right one of three commands with the given probability, the others alike."""
    commands = env.admissible_commands()
    return np.array([right if c == env.right_command() else (1 - right) / 2 for c in commands])


def test_an_advantage_by_hand():
    # Both of two things must be right; the second is with probability 0.3, the first with 0.2.
    settings = world(chores=2, verdict="binary", pass_score=1.0)
    env, _, _ = first_state(settings)
    right, wrong = (
        env.right_command(),
        next(c for c in env.admissible_commands() if c != env.right_command()),
    )
    after = env.fork()
    after.step(right)
    second = shares_of(after, 0.3)
    values = Values(load("chores").exact_state, {(False, 1): second})
    worths = [values.of_action(env, action, 2) for action in (right, wrong, "x")]
    assert worths == pytest.approx([0.3, 0, 0])
    # One turn more, and the reply without effect costs nothing but that turn.
    first = shares_of(env, 0.2)
    both = Values(load("chores").exact_state, {(False, 0): first, (False, 1): second})
    assert both.of_action(env, "x", 3) == pytest.approx(0.2 * 0.3)


class Collector:
    """What the assigner uses of a collector."""

    temperature, turn_cap = 1.0, CAP

    def __init__(self, settings):
        self.make_env = load("chores").factory(settings, Path())


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return make_policy(tmp_path_factory.mktemp("base"))


def played(context, settings, rollout: int) -> Trajectory:
    """A game with random replies, one in six of them without effect."""
    env, task, seen = first_state(settings)
    trajectory, rng = Trajectory(task, rollout), generator("test-exact-play", rollout)
    trajectory.token_ids.extend(context.conversation.opening(seen.text))
    done = False
    while not done and len(trajectory.turns) < CAP:
        action = str(rng.choice([*env.admissible_commands(), "x"]))
        start = len(trajectory.token_ids)
        trajectory.token_ids.extend(context.conversation.reply(action))
        span, step = (start, len(trajectory.token_ids)), env.step(action)
        turn = Turn(seen.text, action, span, step.env_reward, step.progress, True, False)
        trajectory.turns.append(turn)
        seen, done = step.observation, step.done
        trajectory.token_ids.extend(context.conversation.observation(seen.text))
    return trajectory


@pytest.mark.parametrize("game", GAMES)
def test_credit_is_the_exact_advantage_under_the_mean_of_the_groups_answers(policy, game):
    settings = world(**GAMES[game])
    context = Context(
        "chores", policy, Conversation(policy.tokenizer), collector=Collector(settings)
    )
    group = Group([played(context, settings, k) for k in range(4)], ("stream",))
    rows = make_assigner(CreditConfig(kind="exact"), context).assign(group)
    states = []
    for trajectory in group.trajectories:
        env, envs = first_state(settings)[0], []
        for turn in trajectory.turns:
            envs.append(env.fork())
            env.step(turn.action)
        states.append(envs)
    commands = [dict(enumerate(env.admissible_commands() for env in envs)) for envs in states]
    shares = command_shares(context, group.trajectories, commands)
    answers = {}
    for envs, row in zip(states, shares, strict=True):
        for turn, env in enumerate(envs):
            answers.setdefault(question_of(env), []).append(row[turn])

    def mean(at):
        known = answers.get(question_of(at))
        commands = at.admissible_commands()
        shares = np.full(len(commands), 1 / len(commands)) if known is None else np.mean(known, 0)
        return dict(zip(commands, shares, strict=True))

    for envs, row, known, trajectory in zip(states, rows, shares, group.trajectories, strict=True):
        for turn, env in enumerate(envs):
            left = CAP - turn
            every = [to_go(env, command, left, mean) for command in env.admissible_commands()]
            expected = to_go(env, trajectory.turns[turn].action, left, mean) - known[turn] @ every
            assert row[turn] == pytest.approx(expected, abs=1e-9)
    assert any(np.abs(row).max() > 1e-3 for row in rows)


def question_of(env) -> tuple:
    """Which question a game asks: for the bag or a place, and how many things were put away."""
    return tuple(env.admissible_commands()), len(env._chosen)


def test_a_choice_that_cannot_change_the_verdict_gets_exactly_0(policy):
    settings = world(verdict="binary", share=0.25)
    context = Context(
        "chores", policy, Conversation(policy.tokenizer), collector=Collector(settings)
    )
    trajectory = played(context, settings, 0)
    (row,) = make_assigner(CreditConfig(kind="exact"), context).assign(Group([trajectory], ("s",)))
    env, counts = first_state(settings)[0], []
    for turn in trajectory.turns:
        counts.append(any(env.worths().values()))
        env.step(turn.action)
    effective = [turn.action != "x" for turn in trajectory.turns]
    assert [value != 0 for value, ok in zip(row, effective, strict=True) if ok] == [
        count for count, ok in zip(counts, effective, strict=True) if ok
    ]


def test_an_environment_without_an_exact_state_says_so():
    assert load("webshop").lacks("exact_state") and not load("chores").lacks("exact_state")
    with pytest.raises(UserError, match="credit.kind 'exact' requires `exact_state`"):
        load("webshop").exact_state(None)


def test_a_question_that_no_rollout_reached_gets_any_command_alike():
    env, _, _ = first_state(world(chores=2, verdict="binary", pass_score=1.0))
    values = Values(load("chores").exact_state, {})
    assert values.of_action(env, env.right_command(), 2) == pytest.approx(1 / 3)
