"""Advantages modulated by the policy's entropy: the formulas by hand, and on the hall."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from hgrpo.credit.base import Context, Group, make_assigner
from hgrpo.credit.entropy import modulated, most_uncertain
from hgrpo.credit.kinds import CreditConfig
from hgrpo.games.base import Task
from hgrpo.trajectories.trajectory import Trajectory, Turn

ADVANTAGES = np.array([1.0, -1.0])
ENTROPIES = [np.array([0.2, 1.2]), np.array([0.7])]


def test_modulated_by_hand():
    # h is 0, 1 and 0.5; with k = log 4 the weights are 1, 1/4 and 1/2, and their mean is 7/12.
    result = modulated(ADVANTAGES, ENTROPIES, np.log(4), 0.1, np.log(2))
    # The first turn leads to one of h = 1, whose bonus is 0.1 / 2; the others are last turns.
    raw = np.array([12 / 7 + 0.05, 3 / 7, -6 / 7])
    np.testing.assert_allclose(np.concatenate(result), raw - raw.mean(), atol=1e-12)
    assert [len(row) for row in result] == [2, 1]


def test_equal_entropies_modulate_nothing():
    result = modulated(ADVANTAGES, [np.full(1, 0.4), np.full(1, 0.4)], 5.0, 0.1, 1.0)
    np.testing.assert_allclose(np.concatenate(result), [1, -1])


def test_most_uncertain_by_hand():
    assert [row.tolist() for row in most_uncertain(ADVANTAGES, ENTROPIES, 0.3)] == [[0, 1], [0]]
    assert [row.tolist() for row in most_uncertain(ADVANTAGES, ENTROPIES, 0.5)] == [[0, 1], [-1]]
    assert [row.tolist() for row in most_uncertain(ADVANTAGES, ENTROPIES, 1.0)] == [[1, 1], [-1]]
    tied = [np.array([0.5, 0.5]), np.array([0.1])]
    assert [row.tolist() for row in most_uncertain(ADVANTAGES, tied, 0.1)] == [[1, 1], [0]]


def test_all_turns_chosen_are_flat_grpo(policy, collector, group):
    for k, trajectory in enumerate(group.trajectories):
        trajectory.turns[-1].env_reward = float(k % 3 == 0)
    context = Context("toy", policy=policy, collector=collector)
    config = CreditConfig(kind="entropy", rule="chosen", share=1.0)
    assigner = make_assigner(config, context)
    returns = np.array([trajectory.env_return for trajectory in group.trajectories])
    expected = (returns - returns.mean()) / returns.std()
    for row, advantage in zip(assigner.assign(group), expected, strict=True):
        np.testing.assert_allclose(row, advantage)
    # A door is chosen among three at every turn, and nothing else is open.
    assert assigner.report()["turn_entropy"] == pytest.approx(np.log(3), abs=0.2)
    assert assigner.report() == {}


def gradients_of_all_groups(monkeypatch, mode: str, win: float, peers=4) -> tuple[float, float]:
    """Mean and deviation of a group's gradient with respect to the log-odds of the first action.

    A game of two turns. The first chooses, by halves, whether the second one is sure (entropy 0) or
    not (entropy 1); either way the game is won with probability `win`. The true gradient is 0.
    """
    task = Task("t", "p", "h", "x")

    def entropies(policy, tokens, spans, temperature):
        return [np.array([0.5]), np.array([float(tokens[0])])]

    monkeypatch.setattr("hgrpo.policy.logprobs.reply_entropies", entropies)
    config = CreditConfig(kind="entropy", rule="scaled", equal_returns=mode)
    assigner = make_assigner(config, Context("toy", collector=SimpleNamespace(temperature=1.0)))
    mean = square = 0.0
    for outcome in product(product((0, 1), (0, 1)), repeat=peers):
        chance, trajectories = 1.0, []
        for k, (unsure, won) in enumerate(outcome):
            chance *= 0.5 * (win if won else 1 - win)
            turns = [Turn("", "", (0, 1), pays, 0.0, True, False) for pays in (0.0, float(won))]
            trajectories.append(Trajectory(task, k, turns=turns, token_ids=[unsure]))
        rows = assigner.assign(Group(trajectories, ("x",)))
        gradient = sum(
            row[0] * (0.5 - unsure) for row, (unsure, _) in zip(rows, outcome, strict=True)
        )
        mean, square = mean + chance * gradient, square + chance * gradient**2
    return mean, (square - mean**2) ** 0.5


def test_the_bonus_alone_is_bias_where_all_returns_are_equal(monkeypatch):
    moments = {
        (mode, win): gradients_of_all_groups(monkeypatch, mode, win)
        for mode in ("zero", "bonus")
        for win in (0.0, 0.1, 0.5)
    }
    # The table of docs/methods.md.
    expected = {
        ("zero", 0.0): (0.000, 0.000),
        ("zero", 0.1): (0.019, 0.570),
        ("zero", 0.5): (0.048, 0.908),
        ("bonus", 0.0): (0.055, 0.036),
        ("bonus", 0.1): (0.055, 0.570),
        ("bonus", 0.5): (0.055, 0.908),
    }
    for key, values in expected.items():
        assert moments[key] == pytest.approx(values, abs=6e-4), moments
