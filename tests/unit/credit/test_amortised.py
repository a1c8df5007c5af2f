"""Amortised counterfactuals: the regression by hand, and from round to round on the hall."""

import json

import numpy as np
import pytest
from tiny_policy import hall_tasks

from hgrpo.credit.amortised import (
    Values,
    fit,
    load_values,
    loss,
    points,
    ridge,
    save_values,
)
from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.kinds import CreditConfig
from hgrpo.credit.prompt_states import prompt_states
from hgrpo.credit.replay import ReplayRow
from hgrpo.errors import UserError
from hgrpo.policy.head import decode
from hgrpo.policy.logprobs import make_batch
from hgrpo.trajectories.store import sequence_table, turn_table, write_table

ONES = np.ones(3)


def test_ridge_by_hand():
    states, values = np.array([[1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 2.0])
    exact = ridge(states, values, ONES, 0.0)
    np.testing.assert_allclose(exact(np.array([[5.0], [2.5]])), [4, 1.5])
    # In units of the deviation the slope is halved by a penalty of 1.
    half = ridge(states, values, ONES, 1.0)
    np.testing.assert_allclose(half(states), [0.5, 1, 1.5])
    mean = ridge(states, values, np.array([1.0, 1.0, 2.0]), np.inf)
    np.testing.assert_allclose(mean(states), 1.25)
    weighted = ridge(states, np.array([0.0, 1.0, 9.0]), np.array([1.0, 1.0, 1e-12]), 0.0)
    np.testing.assert_allclose(weighted(states[:2]), [0, 1], atol=1e-4)
    with_constant = ridge(np.hstack([states, [[7.0]] * 3]), values, ONES, 0.0)
    np.testing.assert_allclose(with_constant.slope, [1, 0], atol=1e-12)


def test_losses_by_hand():
    states = np.array([[1.0], [3.0]])
    training = states, np.array([0.0, 2.0]), np.ones(2)
    validation = np.array([[2.0], [4.0]]), np.array([1.0, 4.0]), np.array([3.0, 1.0])
    # The line predicts 1 and 3, their mean 1 and 1; the second point has a quarter of the weight.
    errors = [loss(ridge(*training, penalty), *validation) for penalty in (0.0, np.inf)]
    assert errors == pytest.approx([0.25, 2.25])


def row(number, targets, env_return):
    states = np.arange(len(targets), dtype=np.float16)[:, None]
    targets = np.array(targets)
    return ReplayRow(number, 0, "t", 0, states, None, env_return, np.zeros(len(targets)), targets)


def test_points_by_hand():
    rows = [row(1, [np.nan, 0.5], 1.0), row(3, [-0.25, np.nan], 0.0)]
    states, values, weights = points(rows, 3, 2.0)
    assert (states.tolist(), values.tolist()) == ([[1], [0]], [0.5, 0.25])
    assert weights.tolist() == [0.5, 1]
    assert points(rows, 3, None)[2].tolist() == [1, 1]


def test_saved_values_are_read_back_and_others_refused(tmp_path):
    values = Values(0.5, np.array([1.0, 2.0]), np.array([3.0, -1.0]))
    save_values(values, {"n_values": 7}, tmp_path)
    states = np.array([[1.0, 0.0]])
    assert load_values(tmp_path)(states).tolist() == values(states).tolist() == [2.5]
    assert json.loads((tmp_path / "model.json").read_bytes())["metrics"] == {"n_values": 7}
    with pytest.raises(UserError, match=r"not found; expected a fitted value function"):
        load_values(tmp_path / "other")


def play(collector, assigner, seed):
    """Groups of three tasks, with a return that chance decides, and their credit."""
    groups = []
    for task in hall_tasks(3):
        group = collector.collect([task], 4, ("test", seed))[0]
        for k, trajectory in enumerate(group):
            trajectory.turns[-1].env_reward = float((k + seed) % 2)
        groups.append(Group(group, ("test", seed, task.task_id)))
    return groups, [assigner.assign(group) for group in groups]


def assigner(policy, collector, fitted=None, **settings):
    config = CreditConfig(kind="amortised", counterfactual={"alternatives": 1} | settings)
    return make_assigner(config, Context("toy", policy, None, collector, fitted=fitted))


def store(groups, number, folder):
    folder.mkdir()
    flat = [trajectory for group in groups for trajectory in group.trajectories]
    write_table(turn_table(flat, number, 0), folder / "turns.parquet")
    write_table(sequence_table(flat, number, 0), folder / "sequences.parquet")
    return folder


def fitted_to(rounds, out):
    out.mkdir()
    settings = CreditConfig(kind="amortised").declared
    summary = fit(
        settings, rounds, None, 11, len(rounds), out, lambda total, unit: lambda word: None
    )
    return summary, json.loads((out / "train_log.json").read_bytes())["rows"]


def test_the_state_is_that_before_the_reply(policy, collector):
    trajectory = max(collector.collect(hall_tasks(1), 8, ("x",))[0], key=lambda t: len(t.turns))
    states = prompt_states(policy, [trajectory]).astype(np.float16)
    assert len(states) == len(trajectory.turns) > 1
    for turn, state in zip(trajectory.turns, states, strict=True):
        read = make_batch([trajectory.token_ids[: turn.span[0]]], [[]], policy.device)
        hidden, _ = decode(policy.causal_lm, read.token_ids)
        expected = hidden[0, turn.span[0] - 1].detach().numpy()
        np.testing.assert_allclose(state, expected, atol=2e-2, rtol=1e-2)


def test_credit_of_a_round_and_of_the_next(policy, collector, tmp_path):
    first = assigner(policy, collector, turns_per_trajectory=1)
    groups, credit = play(collector, first, 1)
    for group, rows in zip(groups, credit, strict=True):
        for trajectory, credits in zip(group.trajectories, rows, strict=True):
            targets = [turn.target for turn in trajectory.turns]
            assert sum(target is not None for target in targets) == 1
            np.testing.assert_array_equal(credits, [target or 0.0 for target in targets])
    folder = store(groups, 1, tmp_path / "round_1")
    summary, log = fitted_to([folder], tmp_path / "fit")
    assert summary.startswith("amortised: fitted to 12 values")
    assert [each["penalty"] for each in log] == [1e-3, 1e-2, 1e-1, 1.0, 10.0, None]
    values = load_values(tmp_path / "fit")

    second = assigner(policy, collector, tmp_path / "fit", turns_per_trajectory=1)
    groups, credit = play(collector, second, 2)
    for group, rows in zip(groups, credit, strict=True):
        for trajectory, credits in zip(group.trajectories, rows, strict=True):
            learnt = trajectory.env_return - values(
                prompt_states(policy, [trajectory]).astype(np.float16)
            )
            targets = [turn.target for turn in trajectory.turns]
            expected = [
                one if target is None else target
                for target, one in zip(targets, learnt, strict=True)
            ]
            np.testing.assert_array_equal(credits, expected)
    assert second.report()["cf_branches"] == 12


def test_without_a_counterfactual_the_value_is_the_mean_return(policy, collector, tmp_path):
    groups, credit = play(collector, assigner(policy, collector, least_entropy=50.0), 1)
    assert not any(credits.any() for rows in credit for credits in rows)
    summary, log = fitted_to([store(groups, 1, tmp_path / "round_1")], tmp_path / "fit")
    assert "mean return" in summary and log == []
    values = load_values(tmp_path / "fit")
    returns = [t.env_return for group in groups for t in group.trajectories]
    assert values.intercept == pytest.approx(np.mean(returns))
    assert not values.slope.any()


def test_a_lone_task_is_fitted_and_validated_on(policy, collector, tmp_path):
    groups, _ = play(collector, assigner(policy, collector, turns_per_trajectory=1), 1)
    summary, log = fitted_to([store(groups[:1], 1, tmp_path / "round_1")], tmp_path / "fit")
    assert summary.startswith("amortised: fitted to 4 values") and len(log) == 6
