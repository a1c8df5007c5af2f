"""Arms that are one method under two names, on games of chores-hard and by hand."""

from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from hgrpo.config.read import read_yaml
from hgrpo.credit.base import Context
from hgrpo.evaluation.cautions import one_method
from hgrpo.evaluation.shared_rollouts import SharedRollouts, computations, compute
from hgrpo.evaluation.truth.update import update_advantages
from hgrpo.evaluation.truth.update_settings import ArmUpdate
from hgrpo.evaluation.twins import twins, unexplained
from hgrpo.games.chores.env import ChoresEnv
from hgrpo.games.kinds import load
from hgrpo.games.streams import generator
from hgrpo.learning.method import MethodConfig
from hgrpo.stages.sections import environment_settings
from hgrpo.trajectories.played_groups import PlayedGroup
from hgrpo.trajectories.trajectory import FinalState, Trajectory, Turn

# The arms of calibration_hard whose credit needs rollouts alone, and others that compare states.
STUDY = (
    *("flatGRPO", "flatGRPO_AA", "Progressive", "ProgressiveToGo", "RandomCredit"),
    *("GiGPO_shared", "ZeroCredit", "GRPO"),
)
METHODS = (
    *(*STUDY, "HGPO_with_flat", "SALT_shared", "G2PO_shared", "GRAFT_with_flat", "GraphGPO_shared"),
    *("GiGPO", "HGPO", "SALT", "G2PO", "GRAFT", "GraphGPO", "CRBC", "ECPO", "RTMC", "GAGPO"),
)


def arm(name: str, **changes) -> ArmUpdate:
    content = read_yaml(Path("configs/methods") / f"{name}.yaml") | changes
    method = MethodConfig(**content)
    return ArmUpdate(method=method, training=method.training)


def advantages_in(old_state: bool) -> dict[str, np.ndarray]:
    """Advantages of `METHODS` in four groups of eight games of chores-hard."""
    settings = environment_settings(read_yaml(Path("configs/envs/chores-hard.yaml")), "test")
    tasks = load("chores").make_tasks(settings, 0, Path(), Counter())
    stored = [
        PlayedGroup(1, 0, [played(settings, task, k, old_state) for k in range(8)])
        for _, task in islice(tasks, 4)
    ]
    rollouts = SharedRollouts(stored, 11, 0)
    arms = {name: arm(name) for name in METHODS}
    by_name = {}
    for computed in computations({name: each.method.credit for name, each in arms.items()}, {}):
        compute(computed, rollouts.named, rollouts, Context())
        for name in computed.methods:
            by_name[name] = update_advantages(computed.values, rollouts.named, arms[name])
    return {name: by_name[name] for name in METHODS}


def played(settings, task, rollout: int, old_state: bool) -> Trajectory:
    """A game in which two choices in five are the right ones."""
    env, trajectory = ChoresEnv(settings), Trajectory(task, rollout)
    rng = generator("test-twins", task.task_id, rollout)
    seen, done = env.reset(task), False

    def situation() -> tuple[str, str]:
        commands = str(env.admissible_commands())
        return (str(len(trajectory.turns)), commands) if old_state else env.situation()

    while not done:
        state, commands = situation()
        action = str(rng.choice(env.admissible_commands()))
        action = env.right_command() if rng.random() < 0.4 else action
        step = env.step(action)
        turn = Turn(seen.text, action, (0, 1), step.env_reward, step.progress, True, False)
        turn.state, turn.commands = state, commands
        trajectory.turns.append(turn)
        trajectory.success, done, seen = step.success, step.done, step.observation
    trajectory.final = FinalState(seen.text, *situation())
    return trajectory


def pairs(advantages: dict[str, np.ndarray]) -> dict[tuple[str, str], float]:
    names = {name: name for name in METHODS}
    table = twins([advantages], {name: arm(name) for name in METHODS}, names)
    return {(row.method_a, row.method_b): row.unexplained for row in table.itertuples()}


def test_where_all_rollouts_meet_gigpo_is_flat_grpo():
    shares = pairs(advantages_in(old_state=True))
    # Neither zero credit nor the A/A twin is listed with it, nor GRPO, which has another loss.
    of_study = {pair: share for pair, share in shares.items() if {*pair} <= {*STUDY}}
    assert set(of_study) == {("flatGRPO", "GiGPO_shared")}
    assert max(of_study.values()) <= 1e-6


def test_in_chores_no_two_methods_of_the_study_are_one():
    shares = pairs(advantages_in(old_state=False))
    # 0.1 to the power of 31 turns is less than what GraphGPO adds to a deviation.
    flat = {"flatGRPO", "GraphGPO", "GraphGPO_shared"}
    assert {name for pair in shares for name in pair} == flat and len(shares) == 3


def test_the_unexplained_share_by_hand():
    a = np.array([3.0, 4.0])
    assert unexplained(a, 2 * a) == pytest.approx(0, abs=1e-15)
    assert unexplained(a, -a) == 1
    # cos^2 = (3 / 5)^2
    assert unexplained(a, np.array([7.0, 0.0])) == pytest.approx(16 / 25)
    assert np.isnan(unexplained(a, 0 * a))


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        ({"alpha": 0.25}, True),
        ({"stream": 3}, False),
        ({"dead_groups": "keep", "alpha": 0.25}, False),
        ({"training": {"lr": 1e-4}, "alpha": 0.25}, False),
        ({"objective": {"rule": "REINFORCE"}, "alpha": 0.25}, False),
    ],
)
def test_only_arms_that_differ_in_their_advantages_alone_are_one_method(changes, listed):
    values = np.array([0.5, -0.25, np.nan, 0.0])
    other = np.where(np.isnan(values), 7.0, 3 * values)
    updates = {"a": arm("Progressive"), "b": arm("Progressive", **changes)}
    again = {"a": values, "b": 3 * values}
    table = twins([{"a": values, "b": other}, again], updates, {"a": "A", "b": "B"})
    assert len(table) == listed
    # With another factor on the next policy's rollouts they are two methods.
    unequal = [{"a": values, "b": other}, {"a": values, "b": 9 * values}]
    assert twins(unequal, updates, {"a": "A", "b": "B"}).empty


def test_the_sentences():
    row = {"label_a": "A", "label_b": "B", "unexplained": 3.2e-4}
    assert one_method(row) == (
        "A and B are nearly one method under two names: on the same rollouts, their advantages "
        "are equal up to scale, except for 0.03 % of their squared norm."
    )
    assert one_method(row | {"unexplained": 1e-7}) == (
        "A and B are one method under two names: on the same rollouts, their advantages "
        "are equal up to scale."
    )
